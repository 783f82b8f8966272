// The report of bytes held and sent per rank. The compiler fills it with what it
// promises, the program with what it counted; both write it with this one function, so
// that what they share can be compared as text.
#ifndef SHOAL_RT_REPORT_H
#define SHOAL_RT_REPORT_H

#include "shoal-rt/axis_names.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace shoal::rt {

// Adds an axis that follows those before it in the mesh. Parts of a split axis become that axis: sizes multiply,
// a position counts on from that of the parts before.
inline void addAxisValue(std::vector<std::pair<std::string, uint64_t>> &to, const std::string &name,
                         uint64_t scale, uint64_t value, bool isSize) {
  std::string origin(axisOrigin(name));
  if (!to.empty() && origin != name && axisOrigin(to.back().first) == origin) {
    to.back() = {origin, to.back().second * scale + (isSize ? 0 : value)};
    return;
  }
  to.emplace_back(name, value);
}

// One line of a rank's traffic: all collectives of a kind over the same axes, per step.
struct CollectiveReport {
  std::string kind;              // collectiveKind() of traffic.h
  std::vector<std::string> axes; // major to minor
  uint64_t count = 0;
  uint64_t bytes = 0; // sent by this rank, on a ring
};

struct BytesReport {
  uint64_t params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0, peak = 0;
  uint64_t host = 0; // allocated in the memory of the device's host; all else lies in the device's
};

// One line of what a rank copies between its device and the host, per step.
struct TransferReport {
  std::string to; // "host", "device"
  uint64_t count = 0;
  uint64_t bytes = 0;
};

using ReportJson = nlohmann::ordered_json;

struct RankReport {
  uint64_t rank = 0;                                    // MPI rank
  std::vector<std::pair<std::string, uint64_t>> coords; // axis name, position
  BytesReport bytes;
  std::vector<CollectiveReport> collectives;
  std::vector<TransferReport> transfers;
  // What only a run can know, by name: no promise has this member.
  ReportJson measured = ReportJson::object();

  std::vector<std::string> meshAxes; // all axes as the program names them, not written

  void addCoordinate(const std::string &axis, uint64_t size, uint64_t position) {
    meshAxes.push_back(axis);
    addAxisValue(coords, axis, size, position, /*isSize=*/false);
  }

  // Adds to the line of this kind and these axes, which is made at first use; after the coordinates.
  void addCollective(const std::string &kind, const std::vector<std::string> &names, uint64_t count,
                     uint64_t sent) {
    std::vector<std::string> axes = mergeAxisParts(names, meshAxes);
    for (CollectiveReport &line : collectives)
      if (line.kind == kind && line.axes == axes) {
        line.count += count;
        line.bytes += sent;
        return;
      }
    collectives.push_back({kind, axes, count, sent});
  }

  void addTransfer(const std::string &to, uint64_t bytes) {
    for (TransferReport &line : transfers)
      if (line.to == to) {
        ++line.count;
        line.bytes += bytes;
        return;
      }
    transfers.push_back({to, 1, bytes});
  }
};

struct Report {
  std::string program, plan; // name, and what was planned in words
  std::vector<std::pair<std::string, uint64_t>> axes; // name, size
  std::vector<RankReport> ranks;                      // by MPI rank
  ReportJson pipeline; // of a promise with stages: toReport() of timeline.h for one line of ranks; else null
  ReportJson rings;    // of a promise in which keys and values pass around rings: what each sends, beside what; else null

  void addAxis(const std::string &name, uint64_t size) {
    addAxisValue(axes, name, size, size, /*isSize=*/true);
  }
};

inline ReportJson toJson(const RankReport &rank) {
  ReportJson coords = ReportJson::object();
  for (const auto &[axis, position] : rank.coords)
    coords[axis] = position;
  ReportJson collectives = ReportJson::array();
  for (const CollectiveReport &line : rank.collectives)
    collectives.push_back(
        {{"kind", line.kind}, {"axes", line.axes}, {"count", line.count}, {"bytes", line.bytes}});
  const BytesReport &b = rank.bytes;
  ReportJson json = {{"rank", rank.rank},
                     {"coords", coords},
                     {"bytes",
                      {{"params", b.params},
                       {"grads", b.grads},
                       {"optimizer", b.optimizer},
                       {"activations", b.activations},
                       {"workspace", b.workspace},
                       {"peak", b.peak}}},
                     {"collectives", collectives}};
  // Of programs that use both memories only.
  if (b.host)
    json["bytes"]["host"] = b.host;
  for (const TransferReport &line : rank.transfers)
    json["transfers"].push_back({{"to", line.to}, {"count", line.count}, {"bytes", line.bytes}});
  if (!rank.measured.empty())
    json["measured"] = rank.measured;
  return json;
}

inline ReportJson toJson(const Report &report) {
  ReportJson axes = ReportJson::array();
  for (const auto &[name, size] : report.axes)
    axes.push_back({{"name", name}, {"size", size}});
  ReportJson ranks = ReportJson::array();
  for (const RankReport &rank : report.ranks)
    ranks.push_back(toJson(rank));
  ReportJson json = {{"version", 1},
                     {"program", report.program},
                     {"plan", report.plan},
                     {"mesh", {{"axes", axes}}},
                     {"ranks", ranks}};
  if (!report.pipeline.is_null())
    json["pipeline"] = report.pipeline;
  if (!report.rings.is_null())
    json["rings"] = report.rings;
  return json;
}

// Never throws: bytes of a name that are no UTF-8 are replaced.
inline std::string toText(const ReportJson &json, int indent) {
  return json.dump(indent, ' ', false, ReportJson::error_handler_t::replace);
}

// The text of a report file: one indented JSON object and a line end.
inline std::string toText(const Report &report) { return toText(toJson(report), 2) + "\n"; }

} // namespace shoal::rt

#endif // SHOAL_RT_REPORT_H
