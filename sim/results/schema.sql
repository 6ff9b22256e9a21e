-- The results database. Raw counts stand in tables, ratios in views. Units stand in stat_def.
-- docs/db_schema.md is generated from this file: a comment above a table or view is its text.

-- One invocation that simulated something: the manifest.
CREATE TABLE run (
  run_id INTEGER PRIMARY KEY,
  command TEXT NOT NULL,            -- as typed
  heddle_version TEXT NOT NULL,
  build TEXT NOT NULL,              -- build type and compiler
  started_at TEXT NOT NULL,         -- UTC
  finished_at TEXT                  -- UTC; NULL while it runs and where it was interrupted
) STRICT;

-- A resolved machine description.
CREATE TABLE config (
  config_id INTEGER PRIMARY KEY,
  digest TEXT NOT NULL UNIQUE,      -- SHA-256 of the resolved description
  name TEXT NOT NULL,
  sm_count INTEGER NOT NULL,
  sm_clock_hz INTEGER NOT NULL,
  dram_bytes_per_second INTEGER NOT NULL,
  tensor_ops_per_second INTEGER NOT NULL,  -- dense bf16 with fp32 accumulation, all SMs
  fma_ops_per_second INTEGER NOT NULL,     -- FP32, all SMs
  text TEXT NOT NULL                -- the resolved description
) STRICT;

-- The code of a kernel.
CREATE TABLE kernel (
  kernel_id INTEGER PRIMARY KEY,
  digest TEXT NOT NULL UNIQUE,      -- SHA-256 of name and machine code
  name TEXT NOT NULL,
  sm_version INTEGER NOT NULL,
  instruction_count INTEGER NOT NULL,
  registers_per_thread INTEGER NOT NULL
) STRICT;

-- The instructions of a kernel, for the source view.
CREATE TABLE instruction (
  kernel_id INTEGER NOT NULL REFERENCES kernel,
  pc INTEGER NOT NULL,              -- byte offset
  text TEXT NOT NULL,
  PRIMARY KEY (kernel_id, pc)
) STRICT, WITHOUT ROWID;

-- One simulated launch. `key` says what it was made of: simulating the same again gives the same.
CREATE TABLE launch (
  launch_id INTEGER PRIMARY KEY,
  run_id INTEGER NOT NULL REFERENCES run,
  config_id INTEGER NOT NULL REFERENCES config,
  kernel_id INTEGER NOT NULL REFERENCES kernel,
  key TEXT NOT NULL UNIQUE,         -- SHA-256 of trace, launch, description, model version and options
  trace_digest TEXT NOT NULL,
  trace_name TEXT NOT NULL,         -- file name without folder
  ordinal INTEGER NOT NULL,         -- of the launch in its trace
  stream INTEGER NOT NULL,
  grid_x INTEGER NOT NULL, grid_y INTEGER NOT NULL, grid_z INTEGER NOT NULL,
  block_x INTEGER NOT NULL, block_y INTEGER NOT NULL, block_z INTEGER NOT NULL,
  shared_bytes_per_cta INTEGER NOT NULL,
  grid_frozen INTEGER NOT NULL,     -- 1: the grid does not follow the machine's properties
  mode TEXT NOT NULL,               -- full, skeleton or sampled
  execution TEXT NOT NULL,          -- full, the slice that was found to give the same stream, or recorded
  cache_policy TEXT NOT NULL,       -- cold, warm or flush
  dependence TEXT NOT NULL,         -- control_bits, interlocked, rescheduled or scoreboard
  start_cycle INTEGER NOT NULL,
  end_cycle INTEGER NOT NULL,
  duration_ps INTEGER NOT NULL
) STRICT;

-- What the numbers in stat mean.
CREATE TABLE stat_def (
  stat_id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  unit TEXT NOT NULL,
  text TEXT NOT NULL
) STRICT;

-- Counters of a launch.
CREATE TABLE stat (
  launch_id INTEGER NOT NULL REFERENCES launch ON DELETE CASCADE,
  stat_id INTEGER NOT NULL REFERENCES stat_def,
  value INTEGER NOT NULL,
  PRIMARY KEY (launch_id, stat_id)
) STRICT, WITHOUT ROWID;

-- The causes that issue slots are charged to.
CREATE TABLE stall_def (
  stall_id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  text TEXT NOT NULL
) STRICT;

-- Where the issue slots of a launch went; the sum is the counter smsp_issue_slots.
CREATE TABLE stall (
  launch_id INTEGER NOT NULL REFERENCES launch ON DELETE CASCADE,
  stall_id INTEGER NOT NULL REFERENCES stall_def,
  slots INTEGER NOT NULL,
  PRIMARY KEY (launch_id, stall_id)
) STRICT, WITHOUT ROWID;

-- The same per instruction: `selected` counts its issues, the others the slots in which a warp waited to issue it.
CREATE TABLE pc_stat (
  launch_id INTEGER NOT NULL REFERENCES launch ON DELETE CASCADE,
  pc INTEGER NOT NULL,
  stall_id INTEGER NOT NULL REFERENCES stall_def,
  slots INTEGER NOT NULL,
  PRIMARY KEY (launch_id, pc, stall_id)
) STRICT, WITHOUT ROWID;

-- What instructions asked of memory, of those that did. Since schema version 7.
CREATE TABLE pc_memory (
  launch_id INTEGER NOT NULL REFERENCES launch ON DELETE CASCADE,
  pc INTEGER NOT NULL,
  requests INTEGER NOT NULL,        -- of warps with a lane that takes part; of bulk copies those of the TMA unit
  sectors INTEGER NOT NULL,         -- of 32 bytes of global and local memory
  ideal_sectors INTEGER NOT NULL,   -- that the bytes of the lanes fill, request by request
  wavefronts INTEGER NOT NULL,      -- of shared memory
  bank_conflicts INTEGER NOT NULL,  -- of them, beyond those that are needed without conflicts
  PRIMARY KEY (launch_id, pc)
) STRICT, WITHOUT ROWID;

-- Waits for mbarriers and cluster barriers: by which instruction, and which one's arrival or copy ended them (-1: not known,
-- or a cluster barrier). Since schema version 2.
CREATE TABLE barrier_wait (
  launch_id INTEGER NOT NULL REFERENCES launch ON DELETE CASCADE,
  pc INTEGER NOT NULL,
  cause_pc INTEGER NOT NULL,
  waits INTEGER NOT NULL,           -- of warps
  cycles INTEGER NOT NULL,          -- of all of them
  PRIMARY KEY (launch_id, pc, cause_pc)
) STRICT, WITHOUT ROWID;

-- Where the CTAs of a launch ran, and when: of launches that were run with --timeline. Of long grids the CTAs of every 2nd,
-- 4th, ... SM. Since schema version 4.
CREATE TABLE cta (
  launch_id INTEGER NOT NULL REFERENCES launch ON DELETE CASCADE,
  cta INTEGER NOT NULL,             -- number in the grid, x first
  sm INTEGER NOT NULL,
  start_cycle INTEGER NOT NULL,     -- as launch.start_cycle
  end_cycle INTEGER NOT NULL,
  PRIMARY KEY (launch_id, cta)
) STRICT, WITHOUT ROWID;

-- How some counters of a launch grew: what was counted until `cycle` since the sample before, or since its start. They add
-- up to its counters. Of launches that were run with --timeline. Since schema version 4.
CREATE TABLE counter_sample (
  launch_id INTEGER NOT NULL REFERENCES launch ON DELETE CASCADE,
  cycle INTEGER NOT NULL,           -- as launch.end_cycle
  stat_id INTEGER NOT NULL REFERENCES stat_def,
  value INTEGER NOT NULL,
  PRIMARY KEY (launch_id, cycle, stat_id)
) STRICT, WITHOUT ROWID;

-- What sampled mode did with a launch; launches of other modes have no row. Where CTAs were left out, everything that is
-- stored of the launch is extrapolated. Since schema version 5.
CREATE TABLE sampling (
  launch_id INTEGER PRIMARY KEY REFERENCES launch ON DELETE CASCADE,
  ctas INTEGER NOT NULL,            -- of the grid
  simulated_ctas INTEGER NOT NULL,
  jumps INTEGER NOT NULL,           -- parts of the grid that were left out
  interval_cycles INTEGER NOT NULL, -- the launch takes its cycles plus or minus so many, with a confidence of 95 %
  whole_because TEXT NOT NULL,      -- why nothing was left out; empty where something was
  like_ordinal INTEGER              -- launch of the trace that this one is alike, and that was simulated in its place; NULL: none
) STRICT;

-- What was odd about the trace: unknown contents that reached an address or a branch, unsupported instructions.
CREATE TABLE trace_issue (
  launch_id INTEGER NOT NULL REFERENCES launch ON DELETE CASCADE,
  kind TEXT NOT NULL,
  detail TEXT NOT NULL,
  count INTEGER NOT NULL,
  PRIMARY KEY (launch_id, kind, detail)
) STRICT, WITHOUT ROWID;

-- A measurement on real hardware, and where it comes from.
CREATE TABLE hardware_run (
  hardware_run_id INTEGER PRIMARY KEY,
  gpu TEXT NOT NULL,
  kernel_name TEXT NOT NULL,
  source TEXT NOT NULL,
  protocol TEXT NOT NULL,           -- what the time contains
  launch_key TEXT,                  -- launch.key that it is compared with, where known
  UNIQUE (gpu, kernel_name, source, launch_key)
) STRICT;

-- Its numbers, in the units of stat_def where the name stands there.
CREATE TABLE hardware_metric (
  hardware_run_id INTEGER NOT NULL REFERENCES hardware_run ON DELETE CASCADE,
  name TEXT NOT NULL,
  unit TEXT NOT NULL,
  value REAL NOT NULL,
  PRIMARY KEY (hardware_run_id, name)
) STRICT, WITHOUT ROWID;

CREATE INDEX hardware_run_of_launch ON hardware_run (launch_key);

-- A launch in a profile of a real process (`heddle hw import`): which one it was. Its hardware_run has the kernel's name,
-- its hardware_metric time and counters. What the source does not say is NULL. Since schema version 3.
CREATE TABLE hardware_launch (
  hardware_run_id INTEGER PRIMARY KEY REFERENCES hardware_run ON DELETE CASCADE,
  ordinal INTEGER NOT NULL,         -- by the source's start times, from 0
  mangled_name TEXT,
  grid_x INTEGER, grid_y INTEGER, grid_z INTEGER,
  block_x INTEGER, block_y INTEGER, block_z INTEGER,
  cluster_x INTEGER, cluster_y INTEGER, cluster_z INTEGER,
  registers_per_thread INTEGER,
  static_shared_bytes INTEGER,
  dynamic_shared_bytes INTEGER,
  device INTEGER, context INTEGER, stream INTEGER,
  process INTEGER,                  -- as the source numbers them
  correlation INTEGER,              -- with `process` it finds the call that launched it
  graph_node INTEGER,
  launch_call TEXT,                 -- that call; NULL: it lies outside the profile, or there is none
  start_ns INTEGER,                 -- on the source's clock
  time_resolution_ns INTEGER NOT NULL,  -- 1000: the source gives whole microseconds
  trace_digest TEXT,                -- the launch of a trace that was measured,
  trace_ordinal INTEGER             -- where that is known
) STRICT;

-- Which code ran in a measured launch that has numbers of single instructions: kernel.digest. Since schema version 6.
CREATE TABLE hardware_code (
  hardware_run_id INTEGER PRIMARY KEY REFERENCES hardware_run ON DELETE CASCADE,
  kernel_digest TEXT NOT NULL
) STRICT;

-- Numbers of its instructions, named as in hardware_metric: smsp_inst_executed, stall_samples_<cause>, .... Instructions with
-- none did not run, or no sample fell on them. Since schema version 6.
CREATE TABLE hardware_pc_metric (
  hardware_run_id INTEGER NOT NULL REFERENCES hardware_run ON DELETE CASCADE,
  pc INTEGER NOT NULL,              -- byte offset, as instruction.pc
  name TEXT NOT NULL,
  value REAL NOT NULL,
  PRIMARY KEY (hardware_run_id, pc, name)
) STRICT, WITHOUT ROWID;

-- Counters of a launch by name.
CREATE VIEW v_stat AS
SELECT launch_id, name, unit, value FROM stat JOIN stat_def USING (stat_id);

-- Cycles, time and instructions per cycle. sm_mhz is the clock that the time is stated at: the board's sustained clock at
-- the launch's activity (board.sustained_clocks), config.sm_clock_hz where it is switched off or nothing lowers it.
CREATE VIEW v_ipc AS
SELECT l.launch_id, c.name AS config, k.name AS kernel, l.end_cycle - l.start_cycle AS cycles,
       l.duration_ps / 1e6 AS duration_us, (l.end_cycle - l.start_cycle) * 1e6 / NULLIF(l.duration_ps, 0) AS sm_mhz,
       i.value AS warp_instructions,
       CAST(i.value AS REAL) / MAX(l.end_cycle - l.start_cycle, 1) AS ipc_gpu,
       CAST(i.value AS REAL) / MAX(l.end_cycle - l.start_cycle, 1) / c.sm_count AS ipc_sm
FROM launch l JOIN config c USING (config_id) JOIN kernel k USING (kernel_id)
JOIN v_stat i ON i.launch_id = l.launch_id AND i.name = 'smsp_inst_executed';

-- DRAM roofline: achieved rates, what the machine could do, and operations per DRAM byte.
CREATE VIEW v_roofline AS
SELECT l.launch_id, c.name AS config, k.name AS kernel,
       (r.value + w.value) / (l.duration_ps / 1e12) AS dram_bytes_per_second,
       100.0 * (r.value + w.value) / (l.duration_ps / 1e12) / c.dram_bytes_per_second AS dram_percent,
       t.value / (l.duration_ps / 1e12) AS tensor_ops_per_second,
       100.0 * t.value / (l.duration_ps / 1e12) / c.tensor_ops_per_second AS tensor_percent,
       CAST(t.value AS REAL) / NULLIF(r.value + w.value, 0) AS tensor_ops_per_dram_byte
FROM launch l JOIN config c USING (config_id) JOIN kernel k USING (kernel_id)
JOIN v_stat r ON r.launch_id = l.launch_id AND r.name = 'dram_read_bytes'
JOIN v_stat w ON w.launch_id = l.launch_id AND w.name = 'dram_write_bytes'
JOIN v_stat t ON t.launch_id = l.launch_id AND t.name = 'sm_ops_tensor';

-- One line a launch: what the table of `heddle run` shows. The tensor pipe's share is of the cycles of all sub-cores' pipes.
-- simulated_percent (of the CTAs), interval_percent (half of the 95 % interval, of the cycles), whole_because and
-- like_ordinal are NULL outside of sampled mode.
CREATE VIEW v_launch AS
SELECT l.launch_id, c.name AS machine, k.name AS kernel,
       l.grid_x || 'x' || l.grid_y || 'x' || l.grid_z AS grid, i.cycles, i.duration_us, i.warp_instructions, i.ipc_sm,
       100.0 * t.value / MAX(s.value, 1) AS tensor_pipe_percent,
       r.dram_bytes_per_second / 1e9 AS dram_gb_s, r.dram_percent,
       l.trace_name, l.ordinal, l.run_id,
       100.0 * p.simulated_ctas / p.ctas AS simulated_percent,
       100.0 * p.interval_cycles / MAX(i.cycles, 1) AS interval_percent, p.whole_because, p.like_ordinal
FROM launch l JOIN config c USING (config_id) JOIN kernel k USING (kernel_id) JOIN v_ipc i USING (launch_id)
JOIN v_roofline r USING (launch_id)
JOIN v_stat t ON t.launch_id = l.launch_id AND t.name = 'sm_pipe_tensor_cycles_active'
JOIN v_stat s ON s.launch_id = l.launch_id AND s.name = 'smsp_issue_slots'
LEFT JOIN sampling p ON p.launch_id = l.launch_id;

-- Share of the issue slots by cause. Names and shares are looked up only where a query asks for them.
CREATE VIEW v_stall AS
SELECT s.launch_id,
       (SELECT k.name FROM launch l JOIN kernel k USING (kernel_id) WHERE l.launch_id = s.launch_id) AS kernel,
       d.name AS stall, s.slots,
       100.0 * s.slots / (SELECT t.value FROM stat t WHERE t.launch_id = s.launch_id
                          AND t.stat_id = (SELECT stat_id FROM stat_def WHERE name = 'smsp_issue_slots')) AS percent
FROM stall s JOIN stall_def d USING (stall_id)
WHERE s.slots > 0;

-- Simulated against measured, per metric that both have.
CREATE VIEW v_error AS
WITH pair AS (
  SELECT l.launch_id, l.kernel_id, h.hardware_run_id, h.gpu, m.name, m.unit, m.value AS measured,
         CASE WHEN m.name = 'duration_ps' THEN CAST(l.duration_ps AS REAL)
              ELSE (SELECT CAST(s.value AS REAL) FROM stat s JOIN stat_def d USING (stat_id)
                    WHERE s.launch_id = l.launch_id AND d.name = m.name) END AS simulated
  FROM hardware_run h JOIN hardware_metric m USING (hardware_run_id) JOIN launch l ON l.key = h.launch_key)
SELECT p.launch_id, p.hardware_run_id, p.gpu, k.name AS kernel, p.name AS metric, p.unit, p.measured, p.simulated,
       100.0 * (p.simulated - p.measured) / NULLIF(p.measured, 0) AS error_percent
FROM pair p JOIN kernel k USING (kernel_id) WHERE p.simulated IS NOT NULL;
