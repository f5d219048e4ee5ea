#include "vgpu/nccl/rendezvous.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string_view>

namespace vgpu {
namespace {

struct Header {
  std::atomic<int> ranks;
  std::atomic<bool> removed;
};
constexpr std::size_t kHeader = 64;
constexpr std::string_view kMagic = "vgpu-nccl";

std::size_t aligned(std::size_t bytes) { return (bytes + 4095) / 4096 * 4096; }

std::size_t states_bytes(int ranks) {
  return aligned(kHeader + static_cast<std::size_t>(ranks) * sizeof(RankState));
}

std::string path_of(const ncclUniqueId& id) {
  std::string path = "/dev/shm/vgpu-nccl-";
  for (std::size_t i = kMagic.size(); i < kMagic.size() + 16; ++i) {
    char digits[3];
    std::snprintf(digits, sizeof(digits), "%02x", static_cast<unsigned char>(id.internal[i]));
    path += digits;
  }
  return path;
}

// When the process began, in clock ticks since the machine did; 0 if it has ended.
std::uint64_t start_of(int process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  if (!std::getline(file, text)) return 0;
  // After the name in parentheses: the state is field 3, the start is field 22.
  std::size_t at = text.rfind(')');
  if (at == std::string::npos || at + 2 >= text.size()) return 0;
  at += 2;
  if (text[at] == 'Z' || text[at] == 'X') return 0;
  for (int field = 3; field < 22 && at != std::string::npos; ++field) at = text.find(' ', at + 1);
  if (at == std::string::npos) return 0;
  std::uint64_t start = 0;
  for (std::size_t i = at + 1; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i)
    start = start * 10 + static_cast<std::uint64_t>(text[i] - '0');
  return start;
}

const char* kind_name(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return "AllReduce";
    case CollectiveKind::kReduce:
      return "Reduce";
    case CollectiveKind::kBroadcast:
      return "Broadcast";
    case CollectiveKind::kAllGather:
      return "AllGather";
    case CollectiveKind::kReduceScatter:
      return "ReduceScatter";
  }
  return "";
}

}  // namespace

std::string CollectiveCall::describe() const {
  return std::string(kind_name(kind)) + " of " + std::to_string(count) + " elements of type " +
         std::to_string(type) + ", operation " + std::to_string(op) + ", root " +
         std::to_string(root);
}

ncclUniqueId Rendezvous::new_id() {
  ncclUniqueId id{};
  std::memcpy(id.internal, kMagic.data(), kMagic.size());
  if (getrandom(id.internal + kMagic.size(), 16, 0) != 16)
    std::snprintf(id.internal + kMagic.size(), 16, "%d", getpid());
  return id;
}

Rendezvous::Rendezvous(std::string path, void* memory, std::size_t bytes, int ranks, int rank)
    : path_(std::move(path)), memory_(memory), bytes_(bytes), ranks_(ranks), rank_(rank) {
  char* const base = static_cast<char*>(memory);
  states_ = reinterpret_cast<RankState*>(base + kHeader);
  chunks_ = base + states_bytes(ranks);
  mailboxes_ = reinterpret_cast<Mailbox*>(chunks_ + static_cast<std::size_t>(ranks) * kChunk);
}

Rendezvous::~Rendezvous() { munmap(memory_, bytes_); }

Rendezvous* Rendezvous::enter(const ncclUniqueId& id, int ranks, int rank, int device,
                              std::string& error) {
  if (std::memcmp(id.internal, kMagic.data(), kMagic.size()) != 0) {
    error = "the unique id is not one of ncclGetUniqueId";
    return nullptr;
  }
  const std::string path = path_of(id);
  const auto n = static_cast<std::size_t>(ranks);
  const std::size_t bytes = states_bytes(ranks) + n * kChunk + n * n * sizeof(Mailbox);
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  void* memory = MAP_FAILED;
  // The header alone is read before the size is known to fit.
  if (file >= 0 && (lseek(file, 0, SEEK_END) >= static_cast<off_t>(bytes) ||
                    ftruncate(file, static_cast<off_t>(bytes)) == 0))
    memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (file >= 0) close(file);
  if (memory == MAP_FAILED) {
    error = "the file " + path + " cannot be made";
    return nullptr;
  }
  auto* made = new Rendezvous(path, memory, bytes, ranks, rank);
  auto& header = *static_cast<Header*>(memory);
  int expected = 0;
  if (!header.ranks.compare_exchange_strong(expected, ranks) && expected != ranks)
    error = "another rank has " + std::to_string(expected) + " ranks, this one " +
            std::to_string(ranks);
  RankState& own = made->state(rank);
  if (error.empty()) {
    expected = 0;
    if (!own.process.compare_exchange_strong(expected, getpid()))
      error = "rank " + std::to_string(rank) + " is taken by process " + std::to_string(expected);
  }
  if (!error.empty()) {
    delete made;
    return nullptr;
  }
  own.started = start_of(getpid());
  own.device = device + 1;
  for (int other = 0; other < ranks; ++other)
    if (other != rank && made->state(other).device == device + 1)
      error = "duplicate device: rank " + std::to_string(rank) + " and rank " +
              std::to_string(other) + " are both on device " + std::to_string(device);
  if (!error.empty()) {
    made->leave();
    made->remove_file();
    delete made;
    return nullptr;
  }
  own.joined = true;
  return made;
}

bool Rendezvous::all_joined() const {
  for (int r = 0; r < ranks_; ++r)
    if (!states_[r].joined) return false;
  return true;
}

int Rendezvous::lost_rank() const {
  for (int r = 0; r < ranks_; ++r) {
    const RankState& s = states_[r];
    if (r == rank_ || s.started == 0) continue;
    if (s.gone || (s.process != getpid() && start_of(s.process) != s.started)) return r;
  }
  return -1;
}

void Rendezvous::leave() { state(rank_).gone = true; }

void Rendezvous::remove_file() {
  if (!static_cast<Header*>(memory_)->removed.exchange(true)) unlink(path_.c_str());
}

}  // namespace vgpu
