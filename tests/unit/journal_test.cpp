// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/journal.h"

#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>

#include "base/file.h"
#include "temp_tree.h"

namespace wq {
namespace {

// Writes three lines with different priorities and returns the output of the journal.
std::string written(Journal& journal) {
    testing::internal::CaptureStderr();
    for (const auto& [priority, text] :
         {std::pair{LOG_WARNING, "warning"}, {LOG_INFO, "info"}, {LOG_DEBUG, "debug"}})
        journal.write({priority, Event::none, text});
    return testing::internal::GetCapturedStderr();
}

TEST(Journal, WritesWhatIsImportantEnough) {
    Journal journal;
    EXPECT_EQ(written(journal), "warning\ninfo\n");
    journal.set_max_level(LOG_DEBUG);
    EXPECT_EQ(written(journal), "warning\ninfo\ndebug\n");
    journal.set_max_level(LOG_ERR);
    EXPECT_EQ(written(journal), "");
}

// The fields of a datagram, in order. They are delimited by their lengths, not by newlines.
std::vector<std::string> fields_of(const std::string& datagram) {
    std::vector<std::string> out;
    for (std::size_t at = 0; at < datagram.size();) {
        const auto end = datagram.find('\n', at);
        std::uint64_t length = 0;
        for (std::size_t byte = 8; byte > 0; byte--)
            length = length << 8 | static_cast<unsigned char>(datagram[end + byte]);
        out.push_back(datagram.substr(at, end - at) + "=" + datagram.substr(end + 9, length));
        at = end + 9 + length;
        EXPECT_EQ(datagram[at++], '\n');
    }
    return out;
}

TEST(Journal, ADatagramHasTheFieldsOfItsLine) {
    const std::string text = "kcryptd: back\nPRIORITY=0 to 'default'" + std::string(300, '!');
    EXPECT_THAT(fields_of(journal_datagram({LOG_INFO, Event::restored, text, {{"WQ_NAME", "kcryptd"}}})),
                testing::ElementsAre("MESSAGE=" + text, "PRIORITY=6", "SYSLOG_IDENTIFIER=wq-tuned",
                                     "MESSAGE_ID=2f8fec0c460140d0bcee5e705550124c", "WQ_NAME=kcryptd"));
    EXPECT_THAT(fields_of(journal_datagram({LOG_ERR, Event::none, ""})),
                testing::ElementsAre("MESSAGE=", "PRIORITY=3", "SYSLOG_IDENTIFIER=wq-tuned"));
}

// The child sends many more datagrams than the queue can hold to a journal that never reads. If the child
// waited, SIGALRM would kill it.
TEST(Journal, DropsDatagramsRatherThanWaitForAHungJournal) {
    const test::TempTree tree;
    const std::string path = tree.path("socket");
    const Fd journal(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    ASSERT_LT(path.size(), sizeof at.sun_path);
    path.copy(at.sun_path, path.size());
    ASSERT_EQ(::bind(journal.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
    const pid_t child = ::fork();
    if (child == 0) {
        ::alarm(20);
        bool good = true;
        for (int i = 0; i < 10'000; i++) good = send_to_journal("MESSAGE=x\n", path) && good;
        ::_exit(good ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status)) << "it waited";
    EXPECT_EQ(WEXITSTATUS(status), 0) << "what is dropped must not be written to stderr instead";
}

TEST(Journal, TellsWhenNobodyReceivesADatagram) {
    const test::TempTree tree;
    EXPECT_FALSE(send_to_journal("MESSAGE=x\n", tree.path("none")));
    EXPECT_FALSE(send_to_journal("MESSAGE=x\n", tree.path(std::string(200, 'x'))));
}

}  // namespace
}  // namespace wq
