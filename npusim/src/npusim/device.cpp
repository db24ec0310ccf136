// The device "npu": memory of the host under the dispatch key PrivateUse1, kernels of the CPU.
//
// Invariant: a tensor of the device and its CPU alias share one piece of memory, and the alias keeps
// the device's storage alive. So nothing is copied to run a kernel, a kernel that writes into an
// argument writes into the tensor itself, and a view stays a view.
//
// Needs torch's headers alone, not Python's: it is loaded with torch.ops.load_library, and its C
// functions are called with ctypes.

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/view_native.h>
#include <c10/core/Allocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <cmath>
#include <list>
#include <mutex>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <vector>

using at::IntArrayRef;
using at::Scalar;
using at::Tensor;
using c10::DispatchKey;
using c10::DispatchKeySet;
using c10::Storage;

namespace {

constexpr auto kNpu = c10::DeviceType::PrivateUse1;
constexpr int kMost = 64;

int count() {
  static const int found = [] {
    const char* text = std::getenv("NPUSIM_DEVICES");
    const int asked = text ? std::atoi(text) : 8;
    return asked < 1 ? 1 : asked > kMost ? kMost : asked;
  }();
  return found;
}

thread_local int current = 0;
thread_local std::unordered_map<int, c10::StreamId> current_stream;

c10::Device device_of(int index) {
  return c10::Device(kNpu, static_cast<c10::DeviceIndex>(index < 0 ? current : index));
}

struct OnDevice {  // the device that is current, for a while
  int before = current;
  explicit OnDevice(int index) { if (index >= 0) current = index; }
  ~OnDevice() { current = before; }
};

// ---- memory

std::atomic<int64_t> allocated[kMost], peak[kMost];

void account(int index, int64_t bytes) {
  const int64_t now = allocated[index] += bytes;
  int64_t most = peak[index];
  while (most < now && !peak[index].compare_exchange_weak(most, now)) {
  }
}

struct Block {  // what a storage of the device owns: fresh memory, or a storage of the CPU
  void* memory;
  Storage cpu;
  int index;
  int64_t bytes;
  static void release(void* self) {
    auto* block = static_cast<Block*>(self);
    account(block->index, -block->bytes);
    std::free(block->memory);
    delete block;
  }
};

struct Memory final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    void* memory = bytes ? std::aligned_alloc(64, (bytes + 63) / 64 * 64) : nullptr;
    TORCH_CHECK_WITH(OutOfMemoryError, memory || !bytes, "NPU out of memory: ", bytes, " bytes");
    account(current, bytes);
    auto* block = new Block{memory, {}, current, static_cast<int64_t>(bytes)};
    return {memory, block, &Block::release, device_of(current)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }
};
Memory memory;
REGISTER_ALLOCATOR(kNpu, &memory);

std::mutex pinned_mutex;
std::unordered_set<const void*> pinned;

struct PinnedMemory final : c10::Allocator {  // the CPU's, with the addresses remembered
  static void release(void* memory) {
    { std::lock_guard<std::mutex> lock(pinned_mutex); pinned.erase(memory); }
    std::free(memory);
  }
  c10::DataPtr allocate(size_t bytes) override {
    void* memory = std::aligned_alloc(64, (bytes + 64) / 64 * 64);
    { std::lock_guard<std::mutex> lock(pinned_mutex); pinned.insert(memory); }
    return {memory, memory, &release, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }
};
PinnedMemory pinned_memory;

void drop_storage(void* storage) { delete static_cast<Storage*>(storage); }

c10::DataPtr owned_by_cpu(const Storage& cpu, int index) {
  const auto bytes = static_cast<int64_t>(cpu.nbytes());
  account(index, bytes);
  auto* block = new Block{nullptr, cpu, index, bytes};
  return {cpu.mutable_data(), block, &Block::release, device_of(index)};
}

// The same memory as a tensor of the CPU.
Tensor host(const Tensor& tensor) {
  if (!tensor.defined() || !tensor.is_privateuseone()) return tensor;
  const Storage& storage = tensor.storage();
  c10::DataPtr memory(storage.mutable_data(), new Storage(storage), &drop_storage, c10::kCPU);
  auto shared = c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), storage.nbytes(), std::move(memory),
      c10::GetAllocator(c10::kCPU), /*resizable=*/true);
  Tensor alias = at::detail::make_tensor<c10::TensorImpl>(
      Storage(shared), DispatchKeySet(DispatchKey::CPU), tensor.dtype());
  auto* impl = alias.unsafeGetTensorImpl();
  impl->set_sizes_and_strides(tensor.sizes(), tensor.strides(), tensor.storage_offset());
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) impl->set_wrapped_number(true);
  return alias;
}

Tensor on_storage(const Storage& storage, const Tensor& like) {
  Tensor made = at::detail::make_tensor<c10::TensorImpl>(
      Storage(storage), DispatchKeySet(DispatchKey::PrivateUse1), like.dtype());
  made.unsafeGetTensorImpl()->set_sizes_and_strides(
      like.sizes(), like.strides(), like.storage_offset());
  return made;
}

// A tensor of the CPU as one of the device, owning the CPU's memory.
Tensor device_tensor(const Tensor& cpu, int index) {
  auto storage = c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), cpu.storage().nbytes(),
      owned_by_cpu(cpu.storage(), index), &memory, /*resizable=*/true);
  return on_storage(Storage(storage), cpu);
}

// ---- random numbers: a generator of the device has the CPU's engine and its own state

struct Random : at::CPUGeneratorImpl {
  explicit Random(c10::DeviceIndex index) : CPUGeneratorImpl(c10::default_rng_seed_val) {
    device_ = c10::Device(kNpu, index);
    key_set_ = DispatchKeySet(DispatchKey::PrivateUse1);
  }
};

std::vector<at::Generator>& generators() {
  static std::vector<at::Generator> all = [] {
    std::vector<at::Generator> made;
    for (int i = 0; i < count(); ++i) made.push_back(at::make_generator<Random>(i));
    return made;
  }();
  return all;
}

std::mutex random_mutex;

// CPU kernels draw from the CPU's default generator: it takes on the state of the device's for the
// time of one kernel, and gets its own back.
struct Drawing {
  std::unique_lock<std::mutex> lock{random_mutex};
  at::Generator device, cpu;
  c10::intrusive_ptr<c10::TensorImpl> before;
  explicit Drawing(at::Generator of)
      : device(std::move(of)), cpu(at::detail::getDefaultCPUGenerator()) {
    before = state(cpu);
    set(cpu, state(device));
  }
  ~Drawing() {
    set(device, state(cpu));
    set(cpu, before);
  }
  static c10::intrusive_ptr<c10::TensorImpl> state(const at::Generator& generator) {
    return generator.unsafeGetGeneratorImpl()->get_state();
  }
  static void set(at::Generator& generator, const c10::intrusive_ptr<c10::TensorImpl>& value) {
    generator.unsafeGetGeneratorImpl()->set_state(*value);
  }
};

// ---- devices, streams, events: everything has happened when a call returns, but one: what a
// non-blocking copy brings to the host is there when its stream was waited for, and garbage before

std::atomic<c10::StreamId> next_stream{1};

struct Pending {
  Tensor to, data;  // of the host: what is written to, and with what
  std::set<std::pair<int, c10::StreamId>> streams;  // that it is done before
  int64_t number;
};
std::mutex pending_mutex;
std::list<Pending> pending;
int64_t last_pending = 0;

void spoil(const Tensor& to, const Tensor& data) {
  if (to.is_floating_point() || to.is_complex()) to.fill_(std::nan(""));
  else if (to.scalar_type() == at::kBool) to.copy_(data.logical_not());
  else if (at::isIntegralType(to.scalar_type(), false)) to.fill_(to.element_size() > 1 ? -25700 : 90);
}

// The current stream has come to its end: what it was to bring is there.
template <typename Which>
void deliver(const Which& which) {
  std::list<Pending> done;
  {
    std::lock_guard<std::mutex> lock(pending_mutex);
    for (auto it = pending.begin(); it != pending.end();) {
      auto next = std::next(it);
      if (which(*it)) done.splice(done.end(), pending, it);
      it = next;
    }
  }
  at::AutoDispatchBelowADInplaceOrView below;
  for (auto& each : done) each.to.copy_(each.data);
}

void deliver_stream(int index, c10::StreamId id, int64_t until = INT64_MAX) {
  deliver([&](const Pending& each) {
    return each.number <= until && each.streams.count({index, id}) != 0;
  });
}

void deliver_device(int index) {
  deliver([&](const Pending& each) {
    for (const auto& stream : each.streams)
      if (stream.first == index) return true;
    return false;
  });
}

void wait_for(int index, c10::StreamId id, int64_t until, int by, c10::StreamId waiting) {
  std::lock_guard<std::mutex> lock(pending_mutex);
  for (auto& each : pending)
    if (each.number <= until && each.streams.count({index, id})) each.streams.insert({by, waiting});
}

c10::StreamId stream_of(int index) {
  auto found = current_stream.find(index);
  return found == current_stream.end() ? 0 : found->second;
}

struct Moment {  // what an event has recorded
  double at = 0;
  int index = 0;
  c10::StreamId stream = 0;
  int64_t number = 0;
};

struct Guard final : c10::impl::DeviceGuardImplInterface {
  static constexpr c10::DeviceType static_type = kNpu;
  Guard() = default;
  explicit Guard(c10::DeviceType) {}
  c10::DeviceType type() const override { return kNpu; }
  c10::Device exchangeDevice(c10::Device to) const override {
    auto before = getDevice();
    setDevice(to);
    return before;
  }
  c10::Device getDevice() const override { return device_of(current); }
  void setDevice(c10::Device to) const override {
    TORCH_CHECK(to.index() < count(), "npu:", int(to.index()), ": there are ", count(), " devices");
    if (to.index() >= 0) current = to.index();
  }
  void uncheckedSetDevice(c10::Device to) const noexcept override {
    if (to.index() >= 0) current = to.index();
  }
  c10::Stream getStream(c10::Device of) const override {
    const int index = of.index() < 0 ? current : of.index();
    return c10::Stream(c10::Stream::UNSAFE, device_of(index), stream_of(index));
  }
  c10::Stream getDefaultStream(c10::Device of) const override {
    return c10::Stream(c10::Stream::DEFAULT, device_of(of.index()));
  }
  c10::Stream getNewStream(c10::Device of, int = 0) const override {
    return c10::Stream(c10::Stream::UNSAFE, device_of(of.index()), next_stream++);
  }
  c10::Stream exchangeStream(c10::Stream to) const override {
    auto before = getStream(to.device());
    current_stream[to.device_index()] = to.id();
    return before;
  }
  c10::DeviceIndex deviceCount() const noexcept override { return count(); }
  bool queryStream(const c10::Stream& stream) const override {
    synchronizeStream(stream);
    return true;
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    deliver_stream(stream.device_index(), stream.id());
  }
  void synchronizeDevice(c10::DeviceIndex index) const override { deliver_device(index); }
  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex,
              const c10::EventFlag) const override {
    if (!*event) *event = new Moment;
    auto& moment = *static_cast<Moment*>(*event);
    moment.at = std::chrono::duration<double, std::milli>(
        std::chrono::steady_clock::now().time_since_epoch()).count();
    moment.index = stream.device_index();
    moment.stream = stream.id();
    std::lock_guard<std::mutex> lock(pending_mutex);
    moment.number = last_pending;
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (!event) return;
    const auto& moment = *static_cast<Moment*>(event);
    wait_for(moment.index, moment.stream, moment.number, stream.device_index(), stream.id());
  }
  bool queryEvent(void* event) const override {
    synchronizeEvent(event);
    return true;
  }
  void synchronizeEvent(void* event) const override {
    if (!event) return;
    const auto& moment = *static_cast<Moment*>(event);
    deliver_stream(moment.index, moment.stream, moment.number);
  }
  double elapsedTime(void* from, void* to, const c10::DeviceIndex) const override {
    return static_cast<Moment*>(to)->at - static_cast<Moment*>(from)->at;
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    delete static_cast<Moment*>(event);
  }
  void recordDataPtrOnStream(const c10::DataPtr&, const c10::Stream&) const override {}
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

void resize_storage(const Storage& storage, size_t bytes) {
  OnDevice on(storage.device().index());
  auto fresh = memory.allocate(bytes);
  if (storage.nbytes() && bytes)
    std::memcpy(fresh.get(), storage.data(), std::min<size_t>(bytes, storage.nbytes()));
  auto* impl = storage.unsafeGetStorageImpl();
  impl->set_data_ptr_noswap(std::move(fresh));
  impl->set_nbytes(bytes);
}

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  void init() const override {}
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex index) const override {
    return generators().at(index < 0 ? current : index);
  }
  // The first generator that Python asks for on a device is the default one: Python has no other way
  // to it without a module of its own.
  at::Generator getNewGenerator(c10::DeviceIndex index) const override {
    const int at = index < 0 ? current : index;
    TORCH_CHECK(at < count(), "npu:", at, ": there are ", count(), " devices");
    static std::vector<bool> given(kMost, false);
    if (!given[at]) {
      given[at] = true;
      return generators().at(at);
    }
    return at::make_generator<Random>(at);
  }
  c10::DeviceIndex deviceCount() const override { return count(); }
  c10::DeviceIndex getCurrentDevice() const override { return current; }
  void setCurrentDevice(c10::DeviceIndex index) const override { Guard().setDevice({kNpu, index}); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
    return Guard().exchangeDevice({kNpu, index}).index();
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override {
    return exchangeDevice(index);
  }
  c10::Allocator* getPinnedMemoryAllocator() const override { return &pinned_memory; }
  bool isPinnedPtr(const void* address) const override {
    std::lock_guard<std::mutex> lock(pinned_mutex);
    return pinned.count(address) != 0;
  }
  c10::Device getDeviceFromPtr(void*) const override { return device_of(current); }
  void resizePrivateUse1Bytes(const Storage& storage, size_t bytes) const override {
    resize_storage(storage, bytes);
  }
};
Hooks hooks;
const bool hooked = (at::RegisterPrivateUse1HooksInterface(&hooks), true);

// ---- kernels

Tensor empty(IntArrayRef sizes, std::optional<at::ScalarType> type, std::optional<at::Layout>,
             std::optional<c10::Device> device, std::optional<bool>,
             std::optional<at::MemoryFormat> format) {
  OnDevice on(device ? device->index() : -1);
  TORCH_CHECK(current < count(), "npu:", current, ": there are ", count(), " devices");
  return at::detail::empty_generic(sizes, &memory, DispatchKeySet(DispatchKey::PrivateUse1),
                                   at::dtype_or_default(type), format);
}

Tensor empty_strided(IntArrayRef sizes, IntArrayRef strides, std::optional<at::ScalarType> type,
                     std::optional<at::Layout>, std::optional<c10::Device> device,
                     std::optional<bool>) {
  OnDevice on(device ? device->index() : -1);
  TORCH_CHECK(current < count(), "npu:", current, ": there are ", count(), " devices");
  return at::detail::empty_strided_generic(sizes, strides, &memory,
                                           DispatchKeySet(DispatchKey::PrivateUse1),
                                           at::dtype_or_default(type));
}

// Memory of the host as the device's stream finds it: there, what the stream brings has come.
Tensor as_stream_sees(const Tensor& from, int index) {
  if (!from.is_cpu()) return host(from);
  std::lock_guard<std::mutex> lock(pending_mutex);
  Tensor seen = from;
  for (const auto& each : pending) {
    if (!each.streams.count({index, stream_of(index)}) || !each.to.storage().is_alias_of(from.storage()))
      continue;
    const Tensor before = each.to.clone();
    each.to.copy_(each.data);
    seen = from.clone();
    each.to.copy_(before);
  }
  return seen;
}

void bring(const Tensor& to, const Tensor& from, bool non_blocking) {
  at::AutoDispatchBelowADInplaceOrView below;
  const int index = (from.is_privateuseone() ? from : to).device().index();
  if (!to.is_cpu() || !from.is_privateuseone()) {
    host(to).copy_(as_stream_sees(from, index));
  } else if (!non_blocking || to.numel() == 0) {
    deliver_stream(index, stream_of(index));
    to.copy_(host(from));
  } else {
    Tensor data = at::empty_like(to, to.options().memory_format(at::MemoryFormat::Contiguous));
    data.copy_(host(from));
    spoil(to, data);
    std::lock_guard<std::mutex> lock(pending_mutex);
    pending.push_back({to, data, {{index, stream_of(index)}}, ++last_pending});
  }
}

Tensor& copy_(Tensor& to, const Tensor& from, bool non_blocking) {
  bring(to, from, non_blocking);
  return to;
}

Tensor copy_from(const Tensor& from, const Tensor& to, bool non_blocking) {
  bring(to, from, non_blocking);
  return to;
}

Tensor copy_from_and_resize(const Tensor& from, const Tensor& to) {
  to.resize_(from.sizes());
  return copy_from(from, to, false);
}

Scalar local_scalar(const Tensor& tensor) {
  at::AutoDispatchBelowADInplaceOrView below;
  deliver_stream(tensor.device().index(), stream_of(tensor.device().index()));
  return host(tensor).item();
}

Tensor& set_storage_offset(Tensor& tensor, Storage storage, int64_t offset, IntArrayRef sizes,
                           IntArrayRef strides) {
  auto* impl = tensor.unsafeGetTensorImpl();
  impl->set_storage_keep_dtype(std::move(storage));
  if (strides.data() == nullptr) {
    impl->set_storage_offset(offset);
    impl->set_sizes_contiguous(sizes);
  } else {
    impl->set_sizes_and_strides(sizes, strides, offset);
  }
  return tensor;
}

Tensor& set_storage(Tensor& tensor, Storage storage) {
  const int64_t length = storage.nbytes() / tensor.dtype().itemsize();
  return set_storage_offset(tensor, std::move(storage), 0, {length}, {});
}

Tensor& set_tensor(Tensor& tensor, const Tensor& source) {
  return set_storage_offset(tensor, source.storage(), source.storage_offset(), source.sizes(),
                            source.strides());
}

Tensor& set_empty(Tensor& tensor) {
  OnDevice on(tensor.device().index());
  auto storage = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), 0,
                                                      memory.allocate(0), &memory, true);
  return set_storage_offset(tensor, Storage(storage), 0, {0}, {});
}

const Tensor& resize(const Tensor& tensor, IntArrayRef sizes,
                     std::optional<at::MemoryFormat> format) {
  auto* impl = tensor.unsafeGetTensorImpl();
  const size_t need = (c10::multiply_integers(sizes) + impl->storage_offset()) *
                      tensor.dtype().itemsize();
  if (tensor.storage().nbytes() < need) resize_storage(tensor.storage(), need);
  impl->set_sizes_contiguous(sizes);
  if (format && *format != at::MemoryFormat::Contiguous) impl->empty_tensor_restride(*format);
  return tensor;
}

Tensor reshape_alias(const Tensor& tensor, IntArrayRef sizes, IntArrayRef strides) {
  return at::native::as_strided_tensorimpl(tensor, sizes, strides, tensor.storage_offset());
}

void record_stream(Tensor&, c10::Stream) {}

// As torch_npu: a parameter may take on memory of the other device and stay itself, so Module.to keeps
// parameters and what is written on them.
bool can_take_on(const Tensor& self, const Tensor& from) {
  auto dense = [](const Tensor& tensor) { return tensor.is_cpu() || tensor.is_privateuseone(); };
  return self.key_set() == from.key_set() || (dense(self) && dense(from));
}

Tensor convolution(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
                   IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, bool transposed,
                   IntArrayRef output_padding, int64_t groups) {
  at::AutoDispatchBelowADInplaceOrView below;
  std::optional<Tensor> shift;
  if (bias && bias->defined()) shift = host(*bias);
  return device_tensor(at::convolution(host(input), host(weight), shift, stride, padding, dilation,
                                       transposed, output_padding, groups),
                       input.device().index());
}

std::tuple<Tensor, Tensor, Tensor> convolution_backward(
    const Tensor& grad, const Tensor& input, const Tensor& weight, IntArrayRef stride,
    IntArrayRef padding, IntArrayRef dilation, bool transposed, IntArrayRef output_padding,
    int64_t groups, std::array<bool, 3> wanted) {
  at::AutoDispatchBelowADInplaceOrView below;
  const std::vector<int64_t> bias{transposed ? weight.size(1) * groups : weight.size(0)};
  auto made = at::convolution_backward(host(grad), host(input), host(weight), bias, stride, padding,
                                       dilation, transposed, output_padding, groups, wanted);
  const int index = input.device().index();
  auto back = [&](const Tensor& tensor) {
    return tensor.defined() ? device_tensor(tensor, index) : Tensor();
  };
  return {back(std::get<0>(made)), back(std::get<1>(made)), back(std::get<2>(made))};
}

// Operators that take tensors of the CPU beside those of the device, as on real ones: indices and
// lengths.
const std::unordered_set<std::string> mixing{
    "aten::index", "aten::index_put_", "aten::_index_put_impl_", "aten::_unsafe_index",
    "aten::_pack_padded_sequence", "aten::_pad_packed_sequence"};

// Products of matrices: not of integers, complex numbers, or of eight bits.
const std::unordered_set<std::string> products{"aten::mm", "aten::bmm", "aten::addmm",
                                               "aten::baddbmm", "aten::addmv", "aten::mv"};
bool multiplies(at::ScalarType type) {
  return type == at::kHalf || type == at::kBFloat16 || type == at::kFloat || type == at::kDouble;
}

// All other operators: the CPU's kernel on aliases. An operator without one stops in the dispatcher,
// with its name.
void run_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  at::AutoDispatchBelowADInplaceOrView below;
  const auto& schema = op.schema();
  const auto& name = schema.operator_name().name;
  const size_t wanted = schema.arguments().size();
  const size_t first = stack->size() - wanted;

  std::vector<std::pair<Tensor, Tensor>> pairs;  // of the device, its alias
  std::vector<size_t> written;                   // indices into pairs
  int index = -1;
  const bool may_mix = mixing.count(name) != 0, is_product = products.count(name) != 0;
  auto convert = [&](const Tensor& tensor, bool writes) {
    if (!tensor.defined()) return tensor;
    if (!tensor.is_privateuseone()) {
      TORCH_CHECK(may_mix || tensor.dim() == 0 || tensor.numel() == 0, name,
                  ": expected all tensors to be on the same device, found npu and ",
                  tensor.device());
      return tensor;
    }
    TORCH_CHECK(!is_product || multiplies(tensor.scalar_type()), name, ": not implemented for ",
                tensor.scalar_type(), " on an NPU");
    const int at = tensor.device().index();
    TORCH_CHECK(index < 0 || index == at || tensor.dim() == 0, name,
                ": expected all tensors to be on the same device, found npu:", index, " and npu:", at);
    if (index < 0) index = at;
    for (const auto& pair : pairs)
      if (pair.first.is_same(tensor) && !writes) return pair.second;
    Tensor alias = host(tensor);
    if (writes) written.push_back(pairs.size());
    pairs.emplace_back(tensor, alias);
    return alias;
  };

  std::optional<at::Generator> generator;
  bool draws = op.hasTag(at::Tag::nondeterministic_seeded);
  for (size_t i = 0; i < wanted; ++i) {
    auto& value = (*stack)[first + i];
    const auto* alias = schema.arguments()[i].alias_info();
    const bool writes = alias && alias->isWrite();
    if (value.isTensor()) {
      value = convert(value.toTensor(), writes);
    } else if (value.isTensorList()) {
      std::vector<Tensor> list = value.toTensorVector();
      for (auto& tensor : list) tensor = convert(tensor, writes);
      value = c10::List<Tensor>(list);
    } else if (value.isOptionalTensorList()) {
      c10::List<std::optional<Tensor>> list;
      for (const std::optional<Tensor>& tensor : value.toOptionalTensorVector())
        list.push_back(tensor ? std::optional<Tensor>(convert(*tensor, writes)) : std::nullopt);
      value = list;
    } else if (value.isDevice()) {
      if (index < 0) index = value.toDevice().index();
      value = c10::Device(c10::kCPU);
    } else if (value.isGenerator()) {
      generator = value.toGenerator();
      TORCH_CHECK(generator->device().type() == kNpu, name,
                  ": expected a generator of the device npu, found one of ", generator->device());
      value = c10::IValue();
      draws = true;
    }
  }
  if (index < 0) index = current;

  {
    std::optional<Drawing> drawing;
    if (draws) drawing.emplace(generator ? *generator : generators().at(index));
    op.redispatchBoxed(DispatchKeySet(DispatchKey::CPU), stack);
  }

  // A kernel may resize what it writes into: the tensor takes over what its alias has become.
  for (const size_t i : written) {
    auto& [tensor, alias] = pairs[i];
    auto* impl = tensor.unsafeGetTensorImpl();
    if (alias.storage().data() != tensor.storage().data() ||
        alias.storage().nbytes() != tensor.storage().nbytes()) {
      auto* storage = tensor.storage().unsafeGetStorageImpl();
      auto owned = owned_by_cpu(alias.storage(), index);
      storage->set_data_ptr_noswap(std::move(owned));
      storage->set_nbytes(alias.storage().nbytes());
    }
    if (tensor.sizes() != alias.sizes() || tensor.strides() != alias.strides() ||
        tensor.storage_offset() != alias.storage_offset())
      impl->set_sizes_and_strides(alias.sizes(), alias.strides(), alias.storage_offset());
  }

  auto back = [&](const Tensor& result) {
    if (!result.defined() || !result.is_cpu()) return result;
    for (const auto& [tensor, alias] : pairs)
      if (alias.is_same(result)) return tensor;
    for (const auto& [tensor, alias] : pairs)
      if (result.storage().is_alias_of(alias.storage()))
        return on_storage(tensor.storage(), result);
    return device_tensor(result, index);
  };
  const size_t returned = schema.returns().size();
  for (size_t i = stack->size() - returned; i < stack->size(); ++i) {
    auto& value = (*stack)[i];
    if (value.isTensor()) {
      value = back(value.toTensor());
    } else if (value.isTensorList()) {
      std::vector<Tensor> list = value.toTensorVector();
      for (auto& tensor : list) tensor = back(tensor);
      value = c10::List<Tensor>(list);
    }
  }
}

Tensor as_host(const Tensor& tensor) { return host(tensor); }

}  // namespace

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_cpu>());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", TORCH_FN(empty));
  m.impl("empty_strided", TORCH_FN(empty_strided));
  m.impl("copy_", TORCH_FN(copy_));
  m.impl("_copy_from", TORCH_FN(copy_from));
  m.impl("_copy_from_and_resize", TORCH_FN(copy_from_and_resize));
  m.impl("_local_scalar_dense", TORCH_FN(local_scalar));
  m.impl("set_.source_Storage_storage_offset", TORCH_FN(set_storage_offset));
  m.impl("set_.source_Storage", TORCH_FN(set_storage));
  m.impl("set_.source_Tensor", TORCH_FN(set_tensor));
  m.impl("set_", TORCH_FN(set_empty));
  m.impl("resize_", TORCH_FN(resize));
  m.impl("as_strided", TORCH_FN(at::native::as_strided_tensorimpl));
  m.impl("view", TORCH_FN(at::native::view));
  m.impl("_reshape_alias", TORCH_FN(reshape_alias));
  m.impl("record_stream", TORCH_FN(record_stream));
  m.impl("convolution_overrideable", TORCH_FN(convolution));
  m.impl("convolution_backward_overrideable", TORCH_FN(convolution_backward));
  m.impl("_has_compatible_shallow_copy_type", TORCH_FN(can_take_on));
}

// Up to torch 2.8 an operator without a gradient of its own stops before it gets here.
TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m) {
  m.impl("_has_compatible_shallow_copy_type", torch::CppFunction::makeFallthrough());
}

// torch.autocast("npu"): the same lists as on CUDA.
TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFallthrough());
}
#define LOW(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define FULL(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define FULL_SET(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define WIDEST(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
  AT_FORALL_LOWER_PRECISION_FP(LOW)
  AT_FORALL_FP32(FULL)
  AT_FORALL_FP32_SET_OPT_DTYPE(FULL_SET)
  AT_FORALL_PROMOTE(WIDEST)
}

TORCH_LIBRARY(npusim, m) {
  m.def("host(Tensor(a) tensor) -> Tensor(a)");
  m.impl("host", DispatchKey::PrivateUse1, TORCH_FN(as_host));
  m.impl("host", DispatchKey::AutogradPrivateUse1, torch::CppFunction::makeFallthrough());
}

extern "C" {
int npusim_count() { return count(); }
int npusim_current() { return current; }
void npusim_set(int index) { current = index; }
void npusim_synchronize(int index) { deliver_device(index); }
int64_t npusim_allocated(int index) { return allocated[index]; }
int64_t npusim_peak(int index) { return peak[index]; }
void npusim_reset_peak(int index) { peak[index] = allocated[index].load(); }
}
