// SPDX-License-Identifier: LGPL-2.1-or-later
#include "machine/xml_faults.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "base/text.h"

namespace wq {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// The value of ATTRIBUTE in the first tag of TAG's name; "" if it has none.
std::string_view attribute_of(std::string_view tag, std::string_view attribute) {
    tag = tag.substr(0, tag.find('>'));
    const auto at = tag.find(attribute);
    if (at == std::string_view::npos) return "";
    tag.remove_prefix(at + attribute.size());
    return tag.substr(0, tag.find('"'));
}

}  // namespace

std::string why_no_xml(std::string_view text) {
    if (text.empty()) return "it is empty";
    if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff"))
        return "it is UTF-16; convert it with `iconv -f UTF-16 -t UTF-8`, then remove the byte order mark";
    const auto root = text.find("<topology");
    if (root == std::string_view::npos) return "it has no <topology>: `lstopo --of xml FILE` writes one";
    const std::string version(attribute_of(text.substr(root), " version=\""));
    if (number_of<unsigned>(version.substr(0, version.find('.'))).value_or(0) > 2)
        return fmt::format(
            "its export version is {}, and hwloc 2 reads 2.x; export it with `lstopo --of xml "
            "--export-xml-flags v2 FILE`",
            printable(version.substr(0, 16)));
    std::vector<std::string_view> faults;
    if (text.starts_with(kByteOrderMark))
        faults.emplace_back(
            "it begins with a byte order mark (remove it with `sed -i '1s/^\\xEF\\xBB\\xBF//' FILE`)");
    if (text.find("\r\n") != std::string_view::npos)
        faults.emplace_back("its lines end in CRLF (convert them with `sed -i 's/\\r$//' FILE`)");
    if (text.substr(0, root).find("<!--") != std::string_view::npos)
        faults.emplace_back("it has a comment before <topology> (remove it)");
    if (version.empty() && text.find("\"MemorySideCache\"") != std::string_view::npos)
        faults.emplace_back(
            "it is in the format of hwloc 1.x, which has no MemorySideCache (export it in that of 2.x "
            "with `lstopo --of xml FILE`)");
    if (faults.empty()) return "it is damaged, or not an XML of hwloc; `lstopo --of xml FILE` writes one";
    return fmt::format("{}", fmt::join(faults, ", and "));
}

}  // namespace wq
