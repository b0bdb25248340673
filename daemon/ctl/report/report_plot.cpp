// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace wq::ctl {
namespace {

constexpr double kWidth = 420;
constexpr double kHeight = 236;
constexpr double kLeft = 72;
constexpr double kRight = kWidth - 6;
constexpr double kTop = 26;  // leaves space for the title of the axis
constexpr double kBottom = kHeight - 34;

// The frame of the drawing: pairs 1..N from left to right, LOW..HIGH from bottom to top.
struct Frame {
    std::size_t pairs = 1;
    double low = 0;
    double high = 1;

    [[nodiscard]] double x(std::size_t pair) const {
        return kLeft + (kRight - kLeft) * (static_cast<double>(pair) - 0.5) / static_cast<double>(pairs);
    }
    [[nodiscard]] double y(double value) const {
        return kBottom - (kBottom - kTop) * (std::clamp(value, low, high) - low) / (high - low);
    }
};

// The step between about COUNT marks over SPAN: 1, 2 or 5 times a power of ten.
double step_for(double span, double count) {
    const double power = std::pow(10, std::floor(std::log10(span / count)));
    for (const double factor : {1.0, 2.0, 5.0})
        if (span / (factor * power) <= count) return factor * power;
    return 10 * power;
}

std::string text_at(double x, double y, const char* anchor, const std::string& text, const char* kind = "") {
    return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y, anchor, kind,
                       text);
}

std::string level(const char* kind, double y) {
    return fmt::format("<path class=\"{}\" d=\"M{} {:.1f}H{}\"/>\n", kind, kLeft, y, kRight);
}

std::string pair_marks(const Frame& frame) {
    std::string out;
    const auto step = static_cast<std::size_t>(std::max(1.0, step_for(static_cast<double>(frame.pairs), 8)));
    for (std::size_t pair = step; pair <= frame.pairs; pair += step)
        out += text_at(frame.x(pair), kBottom + 14, "middle", std::to_string(pair));
    return out + text_at((kLeft + kRight) / 2, kBottom + 29, "middle", "pair, in the order of time");
}

// TITLE is for the vertical axis.
std::string open_svg(const std::string& title, const std::string& label) {
    return fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n", kWidth, kHeight,
                       escape(label)) +
           text_at(4, 12, "start", escape(title));
}

// A line through LOGS, which are natural logarithms; the vertical axis is in powers of ten.
std::string line(const Frame& frame, const char* kind, const std::vector<double>& logs) {
    std::string path;
    for (std::size_t i = 0; i < logs.size(); i++)
        path += fmt::format("{}{:.1f} {:.1f}", i == 0 ? "M" : "L", frame.x(i + 1),
                            frame.y(logs[i] / std::numbers::ln10));
    if (logs.size() == 1) path += "m-12 0h24";
    return fmt::format("<path class=\"{}\" d=\"{}\"/>\n", kind, path);
}

std::string decade(int power) {
    return power > 4 ? fmt::format("1e{}", power) : fmt::format("{:g}", std::pow(10, power));
}

}  // namespace

std::string effects_svg(const std::vector<double>& percent, const Effect& effect, double tolerance,
                        const std::string& title, const std::string& label) {
    const double limit = 100 * tolerance;
    Frame frame{percent.size(), 0, limit};
    for (const double value : percent) {
        frame.low = std::min(frame.low, value);
        frame.high = std::max(frame.high, std::min(value, kMostPercent));
    }
    const double room = std::max(0.5, 0.08 * (frame.high - frame.low));
    frame.low -= room;
    frame.high += room;

    std::string out = open_svg(title, label);
    if (effect.interval)
        out += fmt::format("<rect class=\"band\" x=\"{}\" y=\"{:.1f}\" width=\"{}\" height=\"{:.1f}\"/>\n",
                           kLeft, frame.y(effect.interval->high), kRight - kLeft,
                           frame.y(effect.interval->low) - frame.y(effect.interval->high));
    const double step = step_for(frame.high - frame.low, 6);
    const auto last = static_cast<int>(std::floor(frame.high / step));
    for (auto mark = static_cast<int>(std::ceil(frame.low / step)); mark <= last; mark++) {
        const double value = mark * step;
        out +=
            level(mark == 0 ? "zero" : "grid", frame.y(value)) +
            text_at(kLeft - 6, frame.y(value) + 4, "end",
                    mark == 0 ? "0%"
                              : fmt::format("{:.4g}% {}", std::abs(value), value < 0 ? "better" : "worse"));
    }
    if (tolerance > 0) out += level("limit", frame.y(limit));
    out += level("median", frame.y(effect.percent));
    std::string dots;
    for (std::size_t i = 0; i < percent.size(); i++)
        dots += fmt::format("M{:.1f} {:.1f}h0", frame.x(i + 1), frame.y(percent[i]));
    const double size = std::clamp(0.7 * (kRight - kLeft) / static_cast<double>(frame.pairs), 2.0, 7.0);
    out += fmt::format("<path class=\"dots\" stroke-width=\"{:.1f}\" d=\"{}\"/>\n", size, dots);
    return out + pair_marks(frame) + "</svg>\n";
}

std::string evidence_svg(const RunningEvidence& evidence, double log_enough, const std::string& label) {
    static constexpr double kLeast = -3;
    const double enough = log_enough / std::numbers::ln10;
    bool cut = false;
    Frame frame{evidence.log_regressed.size(), -1, enough + 0.3};
    for (const auto* logs : {&evidence.log_regressed, &evidence.log_improved})
        for (const double log : *logs) {
            cut = cut || log < kLeast * std::numbers::ln10;
            frame.low = std::max(kLeast, std::min(frame.low, log / std::numbers::ln10));
            frame.high = std::max(frame.high, log / std::numbers::ln10 + 0.3);
        }

    std::string out = open_svg("evidence (logarithmic; 1: none)", label);
    const int step = std::max(1, static_cast<int>(std::ceil((frame.high - frame.low) / 7)));
    for (int power = static_cast<int>(std::ceil(frame.low / step)) * step; power <= frame.high; power += step)
        out += level(power == 0 ? "zero" : "grid", frame.y(power)) +
               text_at(kLeft - 6, frame.y(power) + 4, "end", decade(power));
    if (cut) out += text_at(kLeft - 6, frame.y(kLeast) + 4, "end", "≤0.001");
    const double y = frame.y(enough);
    out += level("limit", y) +
           text_at(kLeft + 4, y - 4, "start", "needed: " + short_evidence(log_enough), " class=\"mark\"");
    out += line(frame, "better", evidence.log_improved) + line(frame, "worse", evidence.log_regressed);
    return out + pair_marks(frame) + "</svg>\n";
}

std::string short_evidence(double log) {
    const double log10 = log / std::numbers::ln10;
    return log10 < 6 ? fmt::format("{:.4g}", std::pow(10, log10))
                     : fmt::format("1e{:.0f}", std::floor(log10));
}

std::string effect_bar_svg(const Effect& effect, double end, const std::string& label) {
    constexpr double kHalf = 80;  // units from zero to each end of the scale
    constexpr double kMiddle = 90;
    const auto x = [&](double percent) { return kMiddle + kHalf * std::clamp(percent / end, -1.0, 1.0); };
    std::string out = fmt::format(
        "<svg viewBox=\"0 0 180 20\" role=\"img\" aria-label=\"{}\">\n<path class=\"grid\" d=\"M10 "
        "10H170\"/>\n"
        "<path class=\"zero\" d=\"M90 1V19\"/>\n",
        escape(label));
    if (effect.interval)
        out += fmt::format("<path class=\"range\" d=\"M{:.1f} 10H{:.1f}\"/>\n", x(effect.interval->low),
                           x(effect.interval->high));
    if (std::abs(effect.percent) > end)
        out += effect.percent > 0 ? "<path class=\"beyond\" d=\"M170 5L178 10L170 15Z\"/>\n"
                                  : "<path class=\"beyond\" d=\"M10 5L2 10L10 15Z\"/>\n";
    else
        out += fmt::format("<path class=\"point\" d=\"M{:.1f} 10h0\"/>\n", x(effect.percent));
    return out + "</svg>\n";
}

std::string legend_html(const std::vector<Mark>& marks) {
    std::string out = "<ul class=\"marks\">\n";
    for (const Mark& mark : marks) {
        const std::string_view kind = mark.mark;
        const std::string drawn = kind == "dots" ? "<path class=\"dots\" stroke-width=\"7\" d=\"M12 6h0\"/>"
                                  : kind == "band"
                                      ? "<rect class=\"band\" x=\"0\" y=\"0\" width=\"24\" height=\"12\"/>"
                                      : fmt::format("<path class=\"{}\" d=\"M0 6H24\"/>", kind);
        out += fmt::format("<li><svg viewBox=\"0 0 24 12\" aria-hidden=\"true\">{}</svg> {}</li>\n", drawn,
                           escape(mark.text));
    }
    return out + "</ul>\n";
}

}  // namespace wq::ctl
