// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/lab/aio_load.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/aio_abi.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <system_error>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "bpf/bpf_shared.h"
#include "bpf/histogram.h"

namespace wq::bench {
namespace {

constexpr std::size_t kAlign = 4096;  // of a buffer for O_DIRECT
constexpr int kStep = 50;             // ms between two checks of the writers

enum class Phase { settle, count, stop };

// State that all writers of a run share.
struct Shared {
    int fd = -1;
    std::uint64_t blocks = 0;
    std::atomic<Phase> phase = Phase::settle;
    std::atomic<int> error = 0;  // errno of the first writer that failed
};

// The kernel's AIO has no wrapper in glibc.
class AioContext {
  public:
    explicit AioContext(unsigned depth) {
        if (::syscall(SYS_io_setup, depth, &context_) != 0) error_ = errno;
    }
    ~AioContext() {
        if (context_ != 0) ::syscall(SYS_io_destroy, context_);  // waits for the writes in flight
    }
    AioContext(const AioContext&) = delete;
    AioContext& operator=(const AioContext&) = delete;

    [[nodiscard]] int error() const { return error_; }
    // Returns 0 or an errno.
    int submit(iocb& what) {
        iocb* list[] = {&what};
        return ::syscall(SYS_io_submit, context_, 1L, list) == 1 ? 0 : errno;
    }
    // Waits for at least one event. Returns the number of EVENTS that came, or a negative errno.
    long wait(std::vector<io_event>& events) {
        const long n = ::syscall(SYS_io_getevents, context_, 1L, static_cast<long>(events.size()),
                                 events.data(), nullptr);
        return n >= 0 ? n : -errno;
    }

  private:
    aio_context_t context_ = 0;
    int error_ = 0;
};

struct Free {
    void operator()(char* p) const { std::free(p); }
};

// The work of one thread.
class Writer {
  public:
    Writer(Shared& shared, unsigned depth)
        : shared_(shared),
          slots_(depth),
          events_(depth),
          counts_(WQ_BUCKETS),
          random_(random_number() | 1U) {}

    void run() {
        if (const int code = write_until_stop(); code != 0) {
            int none = 0;
            shared_.error.compare_exchange_strong(none, code);
        }
    }
    [[nodiscard]] const std::vector<std::uint64_t>& counts() const { return counts_; }

  private:
    struct Slot {
        iocb request{};
        std::int64_t since = 0;
    };

    int write_until_stop() {
        buffer_.reset(static_cast<char*>(std::aligned_alloc(kAlign, kBlock)));
        if (!buffer_) return ENOMEM;
        std::memset(buffer_.get(), 1, kBlock);
        AioContext context(static_cast<unsigned>(slots_.size()));
        if (context.error() != 0) return context.error();
        for (Slot& slot : slots_)
            if (const int code = submit(context, slot); code != 0) return code;
        while (shared_.phase != Phase::stop && shared_.error == 0)
            if (const int code = take(context); code != 0) return code;
        return 0;
    }
    // xorshift64 is sufficient, because the blocks only need to be spread.
    std::uint64_t next_block() {
        random_ ^= random_ << 13U;
        random_ ^= random_ >> 7U;
        random_ ^= random_ << 17U;
        return random_ % shared_.blocks;
    }
    int submit(AioContext& context, Slot& slot) {
        slot.request = {};
        slot.request.aio_lio_opcode = IOCB_CMD_PWRITE;
        slot.request.aio_fildes = static_cast<std::uint32_t>(shared_.fd);
        slot.request.aio_buf = reinterpret_cast<std::uintptr_t>(buffer_.get());
        slot.request.aio_nbytes = kBlock;
        slot.request.aio_offset = static_cast<std::int64_t>(next_block() * kBlock);
        slot.request.aio_data = static_cast<std::uint64_t>(&slot - slots_.data());
        slot.since = clock_ns(CLOCK_MONOTONIC);
        return context.submit(slot.request);
    }
    int take(AioContext& context) {
        const long n = context.wait(events_);
        if (n == -EINTR) return 0;
        if (n < 0) return static_cast<int>(-n);
        const std::int64_t now = clock_ns(CLOCK_MONOTONIC);
        for (long i = 0; i < n; i++) {
            const io_event& event = events_[static_cast<std::size_t>(i)];
            if (event.res < 0) return static_cast<int>(-event.res);
            if (event.res != static_cast<std::int64_t>(kBlock)) return EIO;
            Slot& slot = slots_.at(event.data);
            if (shared_.phase == Phase::count)
                counts_[wq_bucket(static_cast<std::uint64_t>(now - slot.since))]++;
            if (const int code = submit(context, slot); code != 0) return code;
        }
        return 0;
    }

    Shared& shared_;
    std::vector<Slot> slots_;
    std::vector<io_event> events_;
    std::vector<std::uint64_t> counts_;  // writes by bucket of their latency
    std::uint64_t random_;
    std::unique_ptr<char, Free> buffer_;  // for all writes: dm-crypt encrypts to pages of its own
};

// Waits for SECONDS. Errors: a writer failed; a signal came.
Status wait(double seconds, const Shared& shared, const ab::Interrupts& interrupts) {
    const std::int64_t until = clock_ns(CLOCK_MONOTONIC) + static_cast<std::int64_t>(seconds * kNsPerSecond);
    for (;;) {
        if (const int code = shared.error; code != 0) return fail_errno("writing", code);
        const std::int64_t left = until - clock_ns(CLOCK_MONOTONIC);
        if (left <= 0) return {};
        pollfd fd{interrupts.fd(), POLLIN, 0};
        ::poll(&fd, 1, static_cast<int>(std::min<std::int64_t>(left / 1'000'000 + 1, kStep)));
        if (auto ours = interrupts.check(); !ours) return ours;
    }
}

// Checks the device number, because a path outside devtmpfs can name another device.
Status check_number(int fd, const std::string& number) {
    struct stat about {};
    if (::fstat(fd, &about) != 0) return fail_errno("fstat()", errno);
    if (number.empty() || fmt::format("{}:{}", major(about.st_rdev), minor(about.st_rdev)) == number)
        return {};
    return fail(fmt::format("is not the device {}", number), ENODEV);
}

LoadFigures figures_of(const std::vector<std::unique_ptr<Writer>>& writers, double seconds) {
    Histogram all;
    for (const auto& writer : writers)
        for (unsigned bucket = 0; bucket < writer->counts().size(); bucket++)
            if (const auto n = writer->counts()[bucket]; n > 0) all.add(bucket, n);
    return {seconds, all.items(), all.percentile(0.5), all.percentile(0.9), all.percentile(0.99)};
}

}  // namespace

Result<LoadFigures> AioLoad::run(const LoadJob& job, const std::function<void()>& at_edge) {
    const Fd fd(::open(job.path.c_str(), O_WRONLY | O_DIRECT | O_EXCL | O_CLOEXEC));
    if (!fd) return fail_errno(job.path, errno);
    if (auto ours = check_number(fd.get(), job.number); !ours)
        return tl::unexpected(ours.error().in(job.path));
    Shared shared;
    shared.fd = fd.get();
    shared.blocks = job.bytes / kBlock;
    std::vector<std::unique_ptr<Writer>> writers;
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < job.writers; i++) {
        writers.push_back(std::make_unique<Writer>(shared, job.depth));
        try {
            threads.emplace_back(&Writer::run, writers.back().get());
        } catch (const std::system_error& e) {
            shared.error = e.code().value();
            break;
        }
    }
    std::int64_t began = 0, ended = 0;
    Status done = wait(job.settle, shared, interrupts_);
    if (done) {
        at_edge();
        began = clock_ns(CLOCK_MONOTONIC);
        shared.phase = Phase::count;
        done = wait(job.seconds, shared, interrupts_);
        ended = clock_ns(CLOCK_MONOTONIC);
        shared.phase = Phase::settle;  // does not count writes that end during at_edge()
        if (done) at_edge();
    }
    shared.phase = Phase::stop;
    for (std::thread& thread : threads) thread.join();
    if (!done && done.error().code == EINTR) return tl::unexpected(done.error());
    if (!done) return tl::unexpected(done.error().in(job.path));
    const LoadFigures out = figures_of(writers, static_cast<double>(ended - began) / kNsPerSecond);
    if (out.writes == 0) return fail(job.path + ": no write ended in time; give it more --seconds");
    return out;
}

}  // namespace wq::bench
