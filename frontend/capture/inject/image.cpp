#include "frontend/capture/inject/image.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "frontend/capture/frame.h"
#include "frontend/capture/inject/sink.h"
#include "frontend/capture/inject/word_hash.h"

namespace heddle::capture {

bool HasKernel(const uint8_t* cubin, size_t size, const char* kernel);  // elf_layout.cpp

namespace {

struct Image {
  const uint8_t* bytes = nullptr;
  size_t size = 0;
  uint64_t hash = 0;
};

template <typename T>
struct Array {
  T* items = nullptr;
  uint32_t count = 0;
  uint32_t capacity = 0;

  bool Add(const T& item) {
    if (count == capacity) {
      const uint32_t larger = capacity == 0 ? 64 : capacity * 2;
      auto* grown = static_cast<T*>(std::realloc(items, larger * sizeof(T)));
      if (grown == nullptr) return false;
      items = grown;
      capacity = larger;
    }
    items[count++] = item;
    return true;
  }
};

struct ModuleBinding {
  uint32_t module;
  uint32_t image;
};

pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
Array<Image> g_images;
Array<ModuleBinding> g_modules;

// Written to its file and mapped from there, so that it takes no memory that the process would miss.
const uint8_t* Keep(const void* bytes, size_t size, uint32_t id) {
  char path[4200];
  std::snprintf(path, sizeof path, "%s/image-%u", SinkFolder(), id);
  const int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return nullptr;
  void* mapped =
      WriteAll(file, bytes, size) ? mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0) : MAP_FAILED;
  close(file);
  return mapped == MAP_FAILED ? nullptr : static_cast<const uint8_t*>(mapped);
}

}  // namespace

uint32_t AddImage(const void* bytes, size_t size) {
  if (bytes == nullptr || size == 0 || !SinkIsOpen()) return kNoImage;
  const uint64_t hash = WordHash(bytes, size);  // only leads to a comparison of the bytes themselves
  pthread_mutex_lock(&g_lock);
  uint32_t id = kNoImage;
  for (uint32_t i = 0; i < g_images.count && id == kNoImage; ++i) {
    const Image& image = g_images.items[i];
    if (image.hash == hash && image.size == size && std::memcmp(image.bytes, bytes, size) == 0) id = i;
  }
  bool fresh = false;
  if (id == kNoImage) {
    const uint8_t* kept = Keep(bytes, size, g_images.count);
    fresh = kept != nullptr && g_images.Add({kept, size, hash});
    if (fresh) id = g_images.count - 1;
  }
  pthread_mutex_unlock(&g_lock);
  if (fresh) {
    const uint32_t crc = Crc32(bytes, size);
    if (Record record(kImageRecord, 64); record) {
      record->Varint(1, id);
      record->Varint(2, size);
      record->Varint(3, crc);
    }
  } else if (id == kNoImage) {
    WriteNote(kOtherNote, 0, "a cubin could not be kept");
  }
  return id;
}

void BindModule(uint32_t module, uint32_t image) {
  pthread_mutex_lock(&g_lock);
  bool known = false;
  for (uint32_t i = 0; i < g_modules.count; ++i) {
    if (g_modules.items[i].module != module) continue;
    g_modules.items[i].image = image;
    known = true;
  }
  if (!known) g_modules.Add({module, image});
  pthread_mutex_unlock(&g_lock);
}

uint32_t ImageOfModule(uint32_t module) {
  pthread_mutex_lock(&g_lock);
  uint32_t image = kNoImage;
  for (uint32_t i = 0; i < g_modules.count; ++i)
    if (g_modules.items[i].module == module) image = g_modules.items[i].image;
  pthread_mutex_unlock(&g_lock);
  return image;
}

bool ReadLayout(uint32_t image, const char* kernel, ParameterLayout* layout) {
  pthread_mutex_lock(&g_lock);
  const Image found = image < g_images.count ? g_images.items[image] : Image{};
  pthread_mutex_unlock(&g_lock);
  *layout = {};
  return found.bytes != nullptr && ReadLayout(found.bytes, found.size, kernel, layout);
}

uint32_t FindImageWithKernel(const char* kernel, bool* others) {
  *others = false;
  pthread_mutex_lock(&g_lock);
  uint32_t newest = kNoImage;
  for (uint32_t i = g_images.count; i-- > 0 && !*others;) {
    if (!HasKernel(g_images.items[i].bytes, g_images.items[i].size, kernel)) continue;
    if (newest == kNoImage)
      newest = i;
    else
      *others = true;
  }
  pthread_mutex_unlock(&g_lock);
  return newest;
}

void AbandonImages() {
  g_lock = PTHREAD_MUTEX_INITIALIZER;
  g_images.count = 0;
  g_modules.count = 0;
}

}  // namespace heddle::capture
