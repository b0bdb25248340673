// SPDX-License-Identifier: LGPL-2.1-or-later
#include "state/record_thread.h"

#include <linux/close_range.h>
#include <malloc.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <system_error>
#include <utility>

#include "base/file.h"

namespace wq {
namespace {

// Runs WORK and converts exceptions to errors. An exception that leaves a thread would end the daemon.
Status result_of(const RecordWriter::Work& work) {
    try {
        return work();
    } catch (const std::exception& error) {
        return fail(error.what());
    }
}

// Uses the system call: the kernel has it since 5.9, glibc has a function for it only since 2.34. If it
// fails, the thread keeps the daemon's descriptors open until it ends.
void close_all_but(int fd) {
    const auto first = static_cast<unsigned>(STDERR_FILENO + 1);
    const auto kept = static_cast<unsigned>(fd);
    (void)::syscall(SYS_close_range, kept + 1, ~0U, CLOSE_RANGE_UNSHARE);
    if (kept > first) (void)::syscall(SYS_close_range, first, kept - 1, CLOSE_RANGE_UNSHARE);
}

}  // namespace

struct RecordThread::Shared {
    struct Job {
        std::string name;
        RecordWriter::Work work;
        std::vector<RecordWriter::Done> done;
    };

    struct Finished {
        std::vector<RecordWriter::Done> done;
        Status status;
    };

    std::mutex mutex;
    std::condition_variable ended;
    std::deque<Job> waiting;
    std::string doing;  // name of the running job; "" if none
    std::vector<Finished> finished;
    bool running = false;  // a thread exists and will check `waiting` again
    Fd wake;
};

RecordThread::RecordThread() : shared_(std::make_shared<Shared>()) {
    // The short-lived threads and the main loop share one heap, so the threads leave no heap of their own
    // behind.
    ::mallopt(M_ARENA_MAX, 1);
}

RecordThread::~RecordThread() {
    ::sd_event_source_disable_unref(source_);
    (void)give_up();
}

Status RecordThread::start(sd_event* event, std::function<void()> after) {
    shared_->wake = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!shared_->wake) return fail_errno("eventfd", errno);
    const int r = ::sd_event_add_io(event, &source_, shared_->wake.get(), EPOLLIN, on_wake, this);
    if (r < 0) return fail_errno("sd-event", -r);
    after_ = std::move(after);
    begin_thread();
    return {};
}

void RecordThread::put(const std::string& name, Work work, Done done) {
    {
        const std::scoped_lock lock(shared_->mutex);
        const auto known = std::ranges::find(shared_->waiting, name, &Shared::Job::name);
        Shared::Job& job = known != shared_->waiting.end()
                               ? *known
                               : shared_->waiting.emplace_back(Shared::Job{name, {}, {}});
        job.work = std::move(work);
        job.done.push_back(std::move(done));
    }
    begin_thread();
}

// Starts a thread if there is work and no thread is running.
void RecordThread::begin_thread() {
    {
        const std::scoped_lock lock(shared_->mutex);
        if (over_ || !shared_->wake || shared_->running || shared_->waiting.empty()) return;
        shared_->running = true;
    }
    if (thread_.joinable()) thread_.join();  // it has ended or is about to end
    try {
        thread_ = std::thread(run, shared_);
    } catch (const std::system_error& error) {
        const std::scoped_lock lock(shared_->mutex);
        shared_->running = false;
        for (Shared::Job& job : shared_->waiting)
            shared_->finished.push_back({std::move(job.done), fail_errno("no thread", error.code().value())});
        shared_->waiting.clear();
        (void)::eventfd_write(shared_->wake.get(), 1);
    }
}

void RecordThread::run(const std::shared_ptr<Shared>& shared) {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
    close_all_but(shared->wake.get());
    std::unique_lock lock(shared->mutex);
    while (!shared->waiting.empty()) {
        Shared::Job job = std::move(shared->waiting.front());
        shared->waiting.pop_front();
        shared->doing = job.name;
        lock.unlock();
        Status status = result_of(job.work);
        lock.lock();
        shared->doing.clear();
        shared->finished.push_back({std::move(job.done), std::move(status)});
        (void)::eventfd_write(shared->wake.get(), 1);
    }
    shared->running = false;
    shared->ended.notify_all();
}

int RecordThread::on_wake(sd_event_source* /*source*/, int fd, std::uint32_t /*events*/, void* self) {
    eventfd_t count = 0;
    (void)::eventfd_read(fd, &count);
    auto* writer = static_cast<RecordThread*>(self);
    writer->call_done();
    writer->after_();
    return 0;
}

void RecordThread::call_done() {
    std::vector<Shared::Finished> finished;
    {
        const std::scoped_lock lock(shared_->mutex);
        finished.swap(shared_->finished);
    }
    for (const Shared::Finished& each : finished)
        for (const Done& done : each.done) done(each.status);
}

std::vector<std::string> RecordThread::finish(std::chrono::milliseconds limit) {
    {
        std::unique_lock lock(shared_->mutex);
        shared_->ended.wait_for(lock, limit, [this] { return !shared_->running; });
    }
    auto lost = give_up();
    call_done();
    return lost;
}

// The thread ends after its current job, however long that takes.
std::vector<std::string> RecordThread::give_up() {
    over_ = true;
    std::vector<std::string> lost;
    {
        const std::scoped_lock lock(shared_->mutex);
        if (!shared_->doing.empty()) lost.push_back(shared_->doing);
        for (const Shared::Job& job : shared_->waiting) lost.push_back(job.name);
        shared_->waiting.clear();
        if (shared_->running && thread_.joinable()) thread_.detach();
    }
    if (thread_.joinable()) thread_.join();
    return lost;
}

}  // namespace wq
