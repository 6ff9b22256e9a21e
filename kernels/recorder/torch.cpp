// Stand-in for the C interface of libtorch (torch/csrc/inductor/aoti_torch/c/shim.h and torch/csrc/stable/c/shim.h of PyTorch
// 2.15) that extensions of the stable ABI are built against. A tensor is an address with a shape; the operators that host code calls
// between its checks and its launch make views or allocate.
#include <cstdio>
#include <cstring>
#include <exception>
#include <map>
#include <string>
#include <vector>

#include "recorder.h"

namespace heddle::recorder {
namespace {

using StableValue = uint64_t;
using Kernel = void (*)(StableValue*, uint64_t, uint64_t);
constexpr int32_t kCuda = 1;
constexpr int32_t kOk = 0;
constexpr int32_t kFailed = 1;

struct Tensor {
  uint64_t address = 0;
  int32_t type = 0;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
};
struct Library {
  std::string name;
};
using List = std::vector<StableValue>;

struct Registry {
  std::map<std::string, Kernel> kernels;       // "namespace::name"
  std::map<std::string, std::string> schemas;  // the same
};
Registry& Operators() {
  static auto* registry = new Registry;
  return *registry;
}

// PyTorch's ScalarType.
int64_t ElementBytes(int32_t type) {
  switch (type) {
    case 0: case 1: case 11: case 23: case 24: case 25: case 26: case 44: case 45: return 1;
    case 2: case 5: case 15: case 27: return 2;
    case 3: case 6: case 28: return 4;
    default: return 8;
  }
}

std::vector<int64_t> Dense(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> strides(sizes.size());
  int64_t stride = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= sizes[d] > 0 ? sizes[d] : 1;
  }
  return strides;
}

int64_t Elements(const Tensor& tensor) {
  int64_t n = 1;
  for (const int64_t size : tensor.sizes) n *= size;
  return n;
}

bool IsContiguous(const Tensor& tensor) {
  const std::vector<int64_t> dense = Dense(tensor.sizes);
  for (size_t d = 0; d < dense.size(); ++d)
    if (tensor.sizes[d] != 1 && tensor.strides[d] != dense[d]) return false;
  return true;
}

Tensor* Empty(std::vector<int64_t> sizes, int32_t type) {
  auto* tensor = new Tensor{0, type, std::move(sizes), {}};
  tensor->strides = Dense(tensor->sizes);
  tensor->address = Allocate(static_cast<uint64_t>(Elements(*tensor) * ElementBytes(type)));
  return tensor;
}

void Fill(const Tensor& tensor, double value) {
  const auto bytes = static_cast<uint64_t>(Elements(tensor) * ElementBytes(tensor.type));
  if (value == 0) {
    Write({tensor.address, nullptr, bytes, 0});
    return;
  }
  std::vector<char> data(bytes);
  for (uint64_t i = 0; i < bytes; i += static_cast<uint64_t>(ElementBytes(tensor.type))) {
    const auto integer = static_cast<int64_t>(value);
    const auto real = static_cast<float>(value);
    std::memcpy(&data[i], tensor.type == 6 ? static_cast<const void*>(&real) : &integer,
                static_cast<size_t>(ElementBytes(tensor.type)));
  }
  Write({tensor.address, data.data(), bytes, 0});
}

Tensor* TensorOf(StableValue value) { return reinterpret_cast<Tensor*>(value); }
StableValue ValueOf(Tensor* tensor) { return reinterpret_cast<StableValue>(tensor); }
// An optional's value, or `otherwise` where it has none.
StableValue ValueOr(StableValue optional, StableValue otherwise) {
  return optional == 0 ? otherwise : *reinterpret_cast<StableValue*>(optional);
}

// A list of sizes in which one may be -1.
std::vector<int64_t> Shape(StableValue list, int64_t elements) {
  std::vector<int64_t> sizes;
  int64_t known = 1;
  for (const StableValue value : *reinterpret_cast<List*>(list)) {
    sizes.push_back(static_cast<int64_t>(value));
    if (sizes.back() >= 0) known *= sizes.back();
  }
  for (int64_t& size : sizes)
    if (size < 0) size = elements / known;
  return sizes;
}

// Views of a tensor with the same elements; of one that is not contiguous only by taking dimensions of 1 away or adding them.
bool Reshape(const Tensor& from, std::vector<int64_t> sizes, Tensor* to) {
  *to = {from.address, from.type, std::move(sizes), {}};
  to->strides = Dense(to->sizes);
  if (IsContiguous(from)) return true;
  // Each new dimension must be one old dimension, or a part of one, from the inside out.
  size_t d = from.sizes.size();
  int64_t left = 1, stride = 1;
  for (size_t n = to->sizes.size(); n-- > 0;) {
    if (to->sizes[n] == 1) continue;
    while (left == 1 && d > 0) {
      --d;
      left = from.sizes[d];
      stride = from.strides[d];
    }
    int64_t have = left;
    // Old dimensions that follow each other in memory may join.
    while (have < to->sizes[n] && d > 0 && from.strides[d - 1] == stride * have) have *= from.sizes[--d];
    if (have % to->sizes[n] != 0) return false;
    to->strides[n] = stride;
    left = have / to->sizes[n];
    stride *= to->sizes[n];
  }
  return true;
}

int32_t Dispatch(const std::string& name, StableValue* stack) {
  const auto dim = [](const Tensor& tensor, StableValue value) {
    const auto d = static_cast<int64_t>(value);
    return static_cast<size_t>(d < 0 ? d + static_cast<int64_t>(tensor.sizes.size()) : d);
  };
  if (name == "aten::empty") {
    stack[0] = ValueOf(Empty(Shape(stack[0], 0), static_cast<int32_t>(ValueOr(stack[1], 6))));
    return kOk;
  }
  Tensor& self = *TensorOf(stack[0]);
  if (name == "aten::empty_like") {
    stack[0] = ValueOf(Empty(self.sizes, static_cast<int32_t>(ValueOr(stack[1], static_cast<StableValue>(self.type)))));
  } else if (name == "aten::new_empty" || name == "aten::new_zeros") {
    Tensor* made = Empty(Shape(stack[1], 0), static_cast<int32_t>(ValueOr(stack[2], static_cast<StableValue>(self.type))));
    if (name == "aten::new_zeros") Fill(*made, 0);
    stack[0] = ValueOf(made);
  } else if (name == "aten::zero_") {
    Fill(self, 0);
  } else if (name == "aten::transpose") {
    auto* made = new Tensor(self);
    const size_t a = dim(self, stack[1]), b = dim(self, stack[2]);
    std::swap(made->sizes[a], made->sizes[b]);
    std::swap(made->strides[a], made->strides[b]);
    stack[0] = ValueOf(made);
  } else if (name == "aten::view" || name == "aten::reshape") {
    auto* made = new Tensor;
    if (!Reshape(self, Shape(stack[1], Elements(self)), made)) {
      std::fprintf(stderr, "recorder: %s would have to copy\n", name.c_str());
      return kFailed;
    }
    stack[0] = ValueOf(made);
  } else if (name == "aten::squeeze") {
    auto* made = new Tensor(self);
    const size_t d = dim(self, stack[1]);
    if (self.sizes[d] == 1) {
      made->sizes.erase(made->sizes.begin() + static_cast<std::ptrdiff_t>(d));
      made->strides.erase(made->strides.begin() + static_cast<std::ptrdiff_t>(d));
    }
    stack[0] = ValueOf(made);
  } else if (name == "aten::contiguous" && IsContiguous(self)) {
    stack[0] = ValueOf(new Tensor(self));
  } else {
    std::fprintf(stderr, "recorder: no operator %s\n", name.c_str());
    return kFailed;
  }
  return kOk;
}

}  // namespace
}  // namespace heddle::recorder

using heddle::recorder::kOk;
using heddle::recorder::Library;
using heddle::recorder::List;
using heddle::recorder::Operators;
using heddle::recorder::StableValue;
using heddle::recorder::Tensor;

extern "C" {

// ---- For builder/recorder.py. Handles of tensors are never freed: a process records a few launches.
Tensor* heddle_tensor(uint64_t address, int32_t type, int64_t rank, const int64_t* sizes, const int64_t* strides) {
  return new Tensor{address, type, {sizes, sizes + rank}, {strides, strides + rank}};
}
uint64_t heddle_address(const Tensor* tensor) { return tensor->address; }
const char* heddle_schema(const char* name) {
  const auto found = Operators().schemas.find(name);
  return found == Operators().schemas.end() ? nullptr : found->second.c_str();
}
StableValue heddle_optional(StableValue value) { return reinterpret_cast<StableValue>(new StableValue(value)); }
// Calls an operator of a loaded extension: `stack` holds its arguments, then its results. Null or what it threw.
const char* heddle_call(const char* name, StableValue* stack, uint64_t arguments, uint64_t results) {
  static std::string error;
  const auto found = Operators().kernels.find(name);
  if (found == Operators().kernels.end()) return "no such operator";
  try {
    found->second(stack, arguments, results);
    return nullptr;
  } catch (const std::exception& e) {
    error = e.what();
    return error.c_str();
  }
}

// ---- Registration.
uint64_t aoti_torch_abi_version() { return uint64_t{2} << 56 | uint64_t{15} << 48; }
int32_t aoti_torch_library_init_def(const char* name, const char*, uint32_t, Library** library) {
  return *library = new Library{name}, kOk;
}
int32_t aoti_torch_library_init_fragment(const char* name, const char*, uint32_t, Library** library) {
  return *library = new Library{name}, kOk;
}
int32_t aoti_torch_library_init_impl(const char* name, const char*, const char*, uint32_t, Library** library) {
  return *library = new Library{name}, kOk;
}
int32_t aoti_torch_delete_library_object(Library* library) { return delete library, kOk; }
int32_t aoti_torch_library_def(Library* library, const char* schema) {
  const std::string text(schema);
  Operators().schemas[library->name + "::" + text.substr(0, text.find_first_of("( "))] = text;
  return kOk;
}
int32_t torch_library_impl(Library* library, const char* name, heddle::recorder::Kernel kernel, uint64_t) {
  Operators().kernels[library->name + "::" + name] = kernel;
  return kOk;
}
int32_t torch_call_dispatcher(const char* name, const char*, StableValue* stack, uint64_t) {
  return heddle::recorder::Dispatch(name, stack);
}

// ---- Types and devices.
#define HEDDLE_NUMBER(function, number) \
  int32_t function() { return number; }
HEDDLE_NUMBER(aoti_torch_dtype_uint8, 0)
HEDDLE_NUMBER(aoti_torch_dtype_int8, 1)
HEDDLE_NUMBER(aoti_torch_dtype_int16, 2)
HEDDLE_NUMBER(aoti_torch_dtype_int32, 3)
HEDDLE_NUMBER(aoti_torch_dtype_int64, 4)
HEDDLE_NUMBER(aoti_torch_dtype_float16, 5)
HEDDLE_NUMBER(aoti_torch_dtype_float32, 6)
HEDDLE_NUMBER(aoti_torch_dtype_float64, 7)
HEDDLE_NUMBER(aoti_torch_dtype_complex32, 8)
HEDDLE_NUMBER(aoti_torch_dtype_complex64, 9)
HEDDLE_NUMBER(aoti_torch_dtype_complex128, 10)
HEDDLE_NUMBER(aoti_torch_dtype_bool, 11)
HEDDLE_NUMBER(aoti_torch_dtype_bfloat16, 15)
HEDDLE_NUMBER(aoti_torch_dtype_float8_e5m2, 23)
HEDDLE_NUMBER(aoti_torch_dtype_float8_e4m3fn, 24)
HEDDLE_NUMBER(aoti_torch_dtype_float8_e5m2fnuz, 25)
HEDDLE_NUMBER(aoti_torch_dtype_float8_e4m3fnuz, 26)
HEDDLE_NUMBER(aoti_torch_dtype_uint16, 27)
HEDDLE_NUMBER(aoti_torch_dtype_uint32, 28)
HEDDLE_NUMBER(aoti_torch_dtype_uint64, 29)
HEDDLE_NUMBER(torch_dtype_float8_e8m0fnu, 44)
HEDDLE_NUMBER(torch_dtype_float4_e2m1fn_x2, 45)
HEDDLE_NUMBER(aoti_torch_device_type_cpu, 0)
HEDDLE_NUMBER(aoti_torch_device_type_cuda, heddle::recorder::kCuda)
HEDDLE_NUMBER(aoti_torch_device_type_xpu, 12)
HEDDLE_NUMBER(aoti_torch_device_type_mps, 13)
HEDDLE_NUMBER(aoti_torch_device_type_meta, 14)
HEDDLE_NUMBER(aoti_torch_device_type_privateuse1, 20)
HEDDLE_NUMBER(aoti_torch_layout_strided, 0)
HEDDLE_NUMBER(aoti_torch_layout_sparse_coo, 1)
HEDDLE_NUMBER(aoti_torch_layout_sparse_csr, 2)
HEDDLE_NUMBER(aoti_torch_layout__mkldnn, 3)
HEDDLE_NUMBER(aoti_torch_layout_sparse_csc, 4)
HEDDLE_NUMBER(aoti_torch_layout_sparse_bsr, 5)
HEDDLE_NUMBER(aoti_torch_layout_sparse_bsc, 6)
HEDDLE_NUMBER(aoti_torch_layout_jagged, 7)
HEDDLE_NUMBER(aoti_torch_memory_format_contiguous_format, 0)
HEDDLE_NUMBER(aoti_torch_memory_format_preserve_format, 1)
HEDDLE_NUMBER(aoti_torch_memory_format_channels_last, 2)
HEDDLE_NUMBER(aoti_torch_memory_format_channels_last_3d, 3)
#undef HEDDLE_NUMBER
size_t aoti_torch_dtype_element_size(int32_t type) {
  return static_cast<size_t>(heddle::recorder::ElementBytes(type));
}
int32_t aoti_torch_create_device_guard(int32_t, void** guard) { return *guard = nullptr, kOk; }
int32_t aoti_torch_delete_device_guard(void*) { return kOk; }
int32_t aoti_torch_get_current_device_index(int32_t* index) { return *index = 0, kOk; }
int32_t aoti_torch_get_current_cuda_stream(int32_t, void** stream) { return *stream = nullptr, kOk; }

// ---- Tensors.
int32_t aoti_torch_new_tensor_handle(Tensor* tensor, Tensor** made) { return *made = new Tensor(*tensor), kOk; }
int32_t aoti_torch_new_uninitialized_tensor(Tensor** made) { return *made = new Tensor, kOk; }
int32_t aoti_torch_delete_tensor_object(Tensor*) { return kOk; }
int32_t aoti_torch_is_defined(Tensor* tensor, bool* defined) { return *defined = tensor->address != 0, kOk; }
int32_t aoti_torch_get_data_ptr(Tensor* tensor, void** pointer) {
  return *pointer = reinterpret_cast<void*>(tensor->address), kOk;
}
int32_t torch_get_mutable_data_ptr(Tensor* tensor, void** pointer) {
  return aoti_torch_get_data_ptr(tensor, pointer);
}
int32_t torch_get_const_data_ptr(Tensor* tensor, void** pointer) { return aoti_torch_get_data_ptr(tensor, pointer); }
int32_t aoti_torch_get_dtype(Tensor* tensor, int32_t* type) { return *type = tensor->type, kOk; }
int32_t aoti_torch_get_device_type(Tensor*, int32_t* type) { return *type = heddle::recorder::kCuda, kOk; }
int32_t aoti_torch_get_device_index(Tensor*, int32_t* index) { return *index = 0, kOk; }
int32_t aoti_torch_get_layout(Tensor*, int32_t* layout) { return *layout = 0, kOk; }
int32_t aoti_torch_get_dim(Tensor* tensor, int64_t* rank) {
  return *rank = static_cast<int64_t>(tensor->sizes.size()), kOk;
}
int32_t aoti_torch_get_numel(Tensor* tensor, int64_t* elements) {
  return *elements = heddle::recorder::Elements(*tensor), kOk;
}
int32_t aoti_torch_get_sizes(Tensor* tensor, int64_t** sizes) { return *sizes = tensor->sizes.data(), kOk; }
int32_t aoti_torch_get_strides(Tensor* tensor, int64_t** strides) { return *strides = tensor->strides.data(), kOk; }
int32_t aoti_torch_get_size(Tensor* tensor, int64_t d, int64_t* size) {
  return *size = tensor->sizes.at(static_cast<size_t>(d < 0 ? d + static_cast<int64_t>(tensor->sizes.size()) : d)), kOk;
}
int32_t aoti_torch_get_stride(Tensor* tensor, int64_t d, int64_t* stride) {
  return *stride = tensor->strides.at(static_cast<size_t>(d < 0 ? d + static_cast<int64_t>(tensor->sizes.size()) : d)),
         kOk;
}
int32_t aoti_torch_get_storage_offset(Tensor*, int64_t* offset) { return *offset = 0, kOk; }
int32_t aoti_torch_is_contiguous(Tensor* tensor, bool* contiguous) {
  return *contiguous = heddle::recorder::IsContiguous(*tensor), kOk;
}
int32_t aoti_torch_aten_narrow(Tensor* tensor, int64_t d, int64_t start, int64_t length, Tensor** made) {
  *made = new Tensor(*tensor);
  const auto at = static_cast<size_t>(d < 0 ? d + static_cast<int64_t>(tensor->sizes.size()) : d);
  (*made)->sizes[at] = length;
  (*made)->address +=
      static_cast<uint64_t>(start * tensor->strides[at] * heddle::recorder::ElementBytes(tensor->type));
  return kOk;
}
int32_t aoti_torch_aten_fill__Scalar(Tensor* tensor, double value) {
  return heddle::recorder::Fill(*tensor, value), kOk;
}

// ---- Lists and strings.
int32_t torch_new_list_reserve_size(size_t, List** list) { return *list = new List, kOk; }
int32_t torch_list_push_back(List* list, StableValue value) { return list->push_back(value), kOk; }
int32_t torch_list_size(List* list, size_t* size) { return *size = list->size(), kOk; }
int32_t torch_list_get_item(List* list, size_t i, StableValue* value) { return *value = list->at(i), kOk; }
int32_t torch_delete_list(List*) { return kOk; }
int32_t torch_new_string_handle(const char* text, size_t length, std::string** made) {
  return *made = new std::string(text, length), kOk;
}
int32_t torch_delete_string(std::string*) { return kOk; }
int32_t torch_string_length(std::string* text, size_t* length) { return *length = text->size(), kOk; }
int32_t torch_string_c_str(std::string* text, const char** data) { return *data = text->c_str(), kOk; }

}  // extern "C"
