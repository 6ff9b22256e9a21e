#include "tests/support/sass_seeds.h"

#include "tests/support/cubin_builder.h"

namespace heddle::testing {

std::vector<ListingSeed> ListingSeeds() {
  const char* const texts[] = {
      "LDG.E.128 R16,[R24.64]",
      "LDG.E.NA.ENL2.LTC256B.256.CONSTANT RZ,R12,desc[UR46][R4.64],0xf",
      "STG.E.64 desc[UR4][R4.64+-0x20],R2",
      "LDGSTS.E.BYPASS.LTC128B.128 [R201+0x4000][R10.64+0x80],!P3",
      "STS.128 [R30.X4+UR6+0x10],R8",
      "ATOMG.E.CAS.STRONG.GPU PT,R3,[R4],R2,R3",
      "HFMA2.MMA R7,-RZ,RZ,1.875,-0.0022",
      "DADD R22,-R22,1",
      "FFMA.FTZ R0,|R1|,c[0x0][0x160],-INF ",
      "HADD2.F32 R10,-RZ,R6.H1_H1",
      "FFMA2 R20,R16.F32x2.HI_LO,R16.reuse.F32,R20.F32x2.HI_LO",
      "IMAD.WIDE.U32.X R24,P0,R9,UR15,~R24,P1",
      "IADD3.X R9,P2,PT,R23,-0x1,RZ,P1,!PT",
      "LOP3.LUT P4,RZ,R196,0x100,RZ,0xc0,!PT",
      "HMMA.16816.F32.BF16 R32,R92,R84,RZ",
      "HGMMA.64x256x16.F32.BF16 R24,gdesc[UR8].tnspA.tnspB,R24,!UPT,gsb0",
      "UTCOMMA.2CTA.4X gdesc[UR52],gdesc[UR54],tmem[UR17],tmem[UR50],idesc[UR51],tmem[UR10],UP0",
      "UTMALDG.4D.MULTICAST [UR12],[UR10],UR27,desc[URZ]",
      "LDTM.x16 R52,tmem[UR5+0x100]",
      "LDC R6,c[0x2][R3+0xc]",
      "LDC R6,cx[UR4][0x10]",
      "DEPBAR {5,4,3,2,1,0}",
      "DEPBAR.LE SB0,0x3",
      "BRA.DIV ~URZ,0x20",
      "BSSY.RECONVERGENT B0,0x10",
      "CALL.REL.NOINC $helper",
      "RET.REL.NODEC R2,k",
      "P2R R11,PR,RZ,0x7f",
      "R2P PR,R248.B1,0x1c",
      "S2R R0,SR_TID.X",
      "RPCMOV.32 R8,Rpc.LO",
      "SYNCS.PHASECHK.TRANS64.TRYWAIT P1,[R0+URZ+0x30],R5",
      "BPT.TRAP 0x1",
      "NOP ",
  };
  std::vector<ListingSeed> seeds;
  for (const char* text : texts) seeds.push_back({0x000000061810a981, 0x000ea2000c1e1d00, text});
  return seeds;
}

std::vector<std::vector<std::byte>> CubinSeeds() {
  std::vector<std::vector<std::byte>> seeds;
  for (const uint8_t abi : {uint8_t{7}, uint8_t{8}}) {
    for (const uint32_t sm_version : {80u, 90u, 100u}) {
      CubinSpec spec;
      spec.abi = abi;
      spec.sm_version = sm_version;
      spec.code = {{0x000000061810a981, 0x000ea2000c1e1d00}, {0x794d, 0x000fea0003800000}};
      spec.function = "$helper";
      spec.shared_bytes = 256;
      // A line table: version 2, no folder, the file "a"; two rows, then the end of the sequence.
      for (const int byte :
           {48, 0, 0, 0, 2, 0, 21, 0, 0, 0, 1, 1, 251, 14, 10, 0, 1, 1, 1, 1, 0, 0,  0, 1, 0, 97,
            0,  0, 0, 0, 0, 0, 9,  2, 0, 0, 0, 0, 0,   0,  0,  0, 1, 3, 9, 1, 9, 16, 0, 0, 1, 1})
        spec.debug_line.push_back(static_cast<std::byte>(byte));
      spec.line_relocations = {34};
      seeds.push_back(BuildCubin(spec));
    }
  }
  return seeds;
}

}  // namespace heddle::testing
