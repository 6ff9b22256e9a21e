#include "frontend/capture/inject/sink.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "frontend/capture/frame.h"

namespace heddle::capture {
namespace {

constexpr size_t kBufferBytes = size_t{4} << 20;

struct Sink {
  pthread_mutex_t buffer_lock = PTHREAD_MUTEX_INITIALIZER;  // of filling and used
  pthread_mutex_t file_lock = PTHREAD_MUTEX_INITIALIZER;    // of file and writing; taken before buffer_lock
  uint8_t* filling = nullptr;
  uint8_t* writing = nullptr;
  size_t used = 0;
  int file = -1;
  bool open = false;  // under buffer_lock; read without it as a hint
  char folder[4096] = {};
};
Sink g_sink;

// A limit on the length of files is an error of the call here, not the end of the program that the library is a guest of.
class FileSizeSignalHeld {
 public:
  FileSizeSignalHeld() {
    sigset_t pending;
    sigemptyset(&limit_);
    sigaddset(&limit_, SIGXFSZ);
    sigpending(&pending);
    is_held_ = sigismember(&pending, SIGXFSZ) == 0 && pthread_sigmask(SIG_BLOCK, &limit_, &before_) == 0;
  }
  ~FileSizeSignalHeld() {
    if (!is_held_) return;
    const int why = errno;  // of the write
    const timespec at_once = {0, 0};
    while (sigtimedwait(&limit_, nullptr, &at_once) < 0 && errno == EINTR) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = why;
  }
  FileSizeSignalHeld(const FileSizeSignalHeld&) = delete;
  FileSizeSignalHeld& operator=(const FileSizeSignalHeld&) = delete;

 private:
  sigset_t limit_{}, before_{};
  bool is_held_ = false;
};

}  // namespace

bool WriteAll(int file, const void* bytes, size_t size) {
  const FileSizeSignalHeld held;
  const auto* at = static_cast<const uint8_t*>(bytes);
  while (size > 0) {
    const ssize_t written = write(file, at, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    at += written;
    size -= static_cast<size_t>(written);
  }
  return true;
}

namespace {

// With file_lock held. The frame leaves in one call: a kill between two would cut it in half.
bool WriteFrame(const uint8_t* payload, size_t size) {
  uint32_t header[2] = {static_cast<uint32_t>(size), Crc32(payload, size)};
  iovec parts[2] = {{header, sizeof header}, {const_cast<uint8_t*>(payload), size}};
  const FileSizeSignalHeld held;
  const ssize_t written = writev(g_sink.file, parts, 2);
  const auto all = static_cast<ssize_t>(sizeof header + size);
  if (written == all) return true;
  if (written < static_cast<ssize_t>(sizeof header)) return false;
  const auto done = static_cast<size_t>(written) - sizeof header;
  return WriteAll(g_sink.file, payload + done, size - done);
}

// With file_lock held.
void FlushWithFile() {
  pthread_mutex_lock(&g_sink.buffer_lock);
  const size_t size = g_sink.used;
  uint8_t* full = g_sink.filling;
  g_sink.filling = g_sink.writing;
  g_sink.writing = full;
  g_sink.used = 0;
  pthread_mutex_unlock(&g_sink.buffer_lock);
  if (size == 0 || g_sink.file < 0 || WriteFrame(full, size)) return;
  std::fprintf(stderr, "heddle capture: the record file cannot be written (%s); recording ends here\n",
               std::strerror(errno));
  pthread_mutex_lock(&g_sink.buffer_lock);
  __atomic_store_n(&g_sink.open, false, __ATOMIC_RELAXED);
  g_sink.used = 0;
  pthread_mutex_unlock(&g_sink.buffer_lock);
}

}  // namespace

bool OpenSink(const char* folder) {
  if (SinkIsOpen()) return true;
  bool made = false;
  for (int n = 0; n < 1000 && !made; ++n) {
    const int length = n == 0 ? std::snprintf(g_sink.folder, sizeof g_sink.folder, "%s/%d", folder,
                                              static_cast<int>(getpid()))
                              : std::snprintf(g_sink.folder, sizeof g_sink.folder, "%s/%d-%d", folder,
                                              static_cast<int>(getpid()), n);
    if (length <= 0 || static_cast<size_t>(length) + 64 > sizeof g_sink.folder) return false;
    made = mkdir(g_sink.folder, 0700) == 0;
    if (!made && errno != EEXIST) return false;
  }
  if (!made) return false;
  char path[sizeof g_sink.folder + 16];
  std::snprintf(path, sizeof path, "%s/records", g_sink.folder);
  g_sink.file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
  if (g_sink.file < 0) return false;
  if (g_sink.filling == nullptr) g_sink.filling = static_cast<uint8_t*>(std::malloc(kBufferBytes));
  if (g_sink.writing == nullptr) g_sink.writing = static_cast<uint8_t*>(std::malloc(kBufferBytes));
  if (g_sink.filling == nullptr || g_sink.writing == nullptr) return false;
  if (!WriteAll(g_sink.file, kRecordMagic, kRecordMagicBytes)) return false;
  pthread_mutex_lock(&g_sink.buffer_lock);
  g_sink.used = 0;
  __atomic_store_n(&g_sink.open, true, __ATOMIC_RELAXED);
  pthread_mutex_unlock(&g_sink.buffer_lock);
  return true;
}

bool SinkIsOpen() { return __atomic_load_n(&g_sink.open, __ATOMIC_RELAXED); }
const char* SinkFolder() { return g_sink.folder; }

void FlushSink() {
  if (!SinkIsOpen()) return;
  pthread_mutex_lock(&g_sink.file_lock);
  FlushWithFile();
  pthread_mutex_unlock(&g_sink.file_lock);
}

void CloseSink() {
  if (!SinkIsOpen()) return;
  { Record record(kEndRecord, 0); }
  pthread_mutex_lock(&g_sink.buffer_lock);
  __atomic_store_n(&g_sink.open, false, __ATOMIC_RELAXED);
  pthread_mutex_unlock(&g_sink.buffer_lock);
  pthread_mutex_lock(&g_sink.file_lock);
  FlushWithFile();
  if (g_sink.file >= 0) close(g_sink.file);
  g_sink.file = -1;
  pthread_mutex_unlock(&g_sink.file_lock);
}

// Locks may be held by threads that the child does not have.
void AbandonSink() {
  __atomic_store_n(&g_sink.open, false, __ATOMIC_RELAXED);
  if (g_sink.file >= 0) close(g_sink.file);
  g_sink.file = -1;
  g_sink.used = 0;
  g_sink.buffer_lock = PTHREAD_MUTEX_INITIALIZER;
  g_sink.file_lock = PTHREAD_MUTEX_INITIALIZER;
}

Record::Record(uint32_t kind, size_t bound) : encoder_(nullptr) {
  const size_t need = bound + 64;
  if (!SinkIsOpen() || need > kMaxRecordBytes) return;
  for (;;) {
    pthread_mutex_lock(&g_sink.buffer_lock);
    if (!SinkIsOpen()) {
      pthread_mutex_unlock(&g_sink.buffer_lock);
      return;
    }
    if (kBufferBytes - g_sink.used >= need) break;
    pthread_mutex_unlock(&g_sink.buffer_lock);
    FlushSink();
  }
  open_ = true;
  encoder_ = Encoder(g_sink.filling + g_sink.used);
  outer_ = encoder_.Begin(1);  // Batch.record
  inner_ = encoder_.Begin(kind);
}

Record::~Record() {
  if (!open_) return;
  encoder_.End(inner_);
  encoder_.End(outer_);
  g_sink.used = static_cast<size_t>(encoder_.cursor() - g_sink.filling);
  pthread_mutex_unlock(&g_sink.buffer_lock);
}

void WriteNote(NoteKind kind, uint32_t status, const char* subject, uint64_t count) {
  const size_t length = std::strlen(subject);
  if (Record record(kNoteRecord, length + 64); record) {
    record->Varint(1, kind);
    record->Varint(2, status);
    record->Bytes(3, subject, length);
    record->Varint(4, count);
  }
}

}  // namespace heddle::capture
