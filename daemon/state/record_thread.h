// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <systemd/sd-event.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "state/state_file.h"

namespace wq {

// The daemon's RecordWriter: one thread besides the event loop, which exists only while there is work.
//
// A thread that waits for a disk cannot be ended, not even by SIGKILL, and a process ends only with its last
// thread. Therefore the thread has its own table of file descriptors: if the daemon ends or is killed
// meanwhile, its lock and its BPF programs are released at once, and only the thread itself remains.
class RecordThread : public RecordWriter {
  public:
    RecordThread();
    ~RecordThread() override;  // does not wait for the running work; drops the waiting work
    RecordThread(const RecordThread&) = delete;
    RecordThread& operator=(const RecordThread&) = delete;

    // Starts to do work. EVENT's loop calls each Done, and then AFTER.
    Status start(sd_event* event, std::function<void()> after);
    void put(const std::string& name, Work work, Done done) override;
    // For the end of the daemon: waits at most LIMIT for all work, and calls each Done. Returns the names of
    // the work that is not done by then. It is given up, as is any work that a Done adds.
    std::vector<std::string> finish(std::chrono::milliseconds limit);

  private:
    struct Shared;
    static void run(const std::shared_ptr<Shared>& shared);
    static int on_wake(sd_event_source* source, int fd, std::uint32_t events, void* self);
    void begin_thread();
    void call_done();
    std::vector<std::string> give_up();

    std::shared_ptr<Shared> shared_;  // also held by the thread, which may outlive this object
    std::thread thread_;
    bool over_ = false;  // no thread is started any more
    sd_event_source* source_ = nullptr;
    std::function<void()> after_;
};

}  // namespace wq
