package import GattherdModel

/// The metric of a device's stream, as the history summarises it.
package struct StatisticsQuantity: Hashable, Sendable {
    package let device: String
    package let stream: String
    package let metric: String
    package let unit: String?

    package init(device: String, stream: String, metric: String, unit: String?) {
        (self.device, self.stream, self.metric, self.unit) = (device, stream, metric, unit)
    }
}

/// The summary of an hour.
package struct HourSummary: Hashable, Sendable {
    package let start: Timestamp
    package let (min, mean, max): (Double, Double, Double)

    package init(start: Timestamp, min: Double, mean: Double, max: Double) {
        (self.start, self.min, self.mean, self.max) = (start, min, mean, max)
    }
}

/// The result of an import.
package struct StatisticsReport: Hashable, Sendable {
    /// The entities of the metrics that have statistics of means.
    package var entities: Set<String> = []
    /// The entities of which hours were imported.
    package var importedEntities: Set<String> = []
    /// The imported hours of all entities together.
    package var hours = 0
    /// Entities that cannot be imported, with the remedy.
    package var problems: [String] = []

    package init() {}
}

/// An import into the long-term statistics of one Home Assistant.
///
/// Home Assistant replaces the statistics of an hour that it has already, so an import can be repeated. Calls block and
/// belong to one thread.
package final class StatisticsSession {
    /// An entity, and the form of its statistics.
    private struct Target {
        let entity: String
        let unit: String?
        let unitClass: String?
        let conversion: StatisticsUnit
    }

    /// The time after the end of an hour in which Home Assistant makes its own statistics of it, with a margin.
    private static let compileTime = Duration.seconds(60)
    /// The version from which an import states the type of the mean and the class of the unit.
    private static let explicitMetadata = [2025, 11]
    /// The longest id of an entity that Home Assistant can have, in bytes.
    private static let longestEntity = 255
    /// The longest unit in a problem, in bytes.
    private static let longestUnit = 64

    package private(set) var report = StatisticsReport()
    private let client: HomeAssistantClient
    private var targets: [StatisticsQuantity: [Target]] = [:]
    /// The entities whose statistics Home Assistant refuses.
    private var refused: Set<String> = []
    /// The error if Home Assistant has refused an entity and accepted none.
    package private(set) var refusal: HomeAssistantError?

    /// True if no more hours can be imported: every entity is refused.
    package var refusesAll: Bool {
        refusal != nil && targets.values.joined().allSatisfy { refused.contains($0.entity) }
    }

    /// Connects, and finds the entities of metrics.
    ///
    /// - Parameters:
    ///   - server: The server.
    ///   - series: The metrics by the `unique_id` of their entities.
    ///   - end: The end of the last hour to be imported.
    ///   - isCancelled: Returns true to end calls soon.
    /// - Throws: ``HomeAssistantError``.
    package init(
        _ server: HomeAssistantServer,
        _ series: [String: [StatisticsQuantity]],
        until end: Timestamp,
        isCancelled: @escaping () -> Bool = { false }
    ) throws(HomeAssistantError) {
        client = try HomeAssistantClient(server, isCancelled: isCancelled)
        // Home Assistant adds the rows of an hour for all entities at once, and fails if one is there already.
        if let time = client.time, time < end.advanced(by: Self.compileTime) {
            let problem = "the clock of Home Assistant at \(server.url) is behind that of this host"
            throw HomeAssistantError(.unavailable, "\(problem): it is \(time.rfc3339) there; synchronise both")
        }
        // At its start Home Assistant adds the rows of the hours that it missed.
        guard JSONObject(try client.request("get_config"))["state"]?.text == "RUNNING" else {
            throw HomeAssistantError(.unavailable, "Home Assistant at \(server.url) is still starting; try again later")
        }
        try findTargets(series)
    }

    /// Imports hours, each entity's in one request; a refused entity is a problem that does not delay the others.
    package func add(_ hours: [StatisticsQuantity: [HourSummary]]) throws(HomeAssistantError) {
        for (quantity, summaries) in hours {
            for target in targets[quantity] ?? [] where !refused.contains(target.entity) {
                do throws(HomeAssistantError) {
                    try add(summaries, to: target)
                    report.hours += summaries.count
                    report.importedEntities.insert(target.entity)
                    refusal = nil
                } catch {
                    guard error.kind == .refused else { throw error }
                    if refused.isEmpty, report.importedEntities.isEmpty {
                        let problem = "Home Assistant refuses all statistics of these hours, so none is imported"
                        refusal = HomeAssistantError(.refusesAll, "\(problem); \(target.entity): \(error)")
                    }
                    refused.insert(target.entity)
                    let advice = "to import these hours later, run: gattherd homeassistant statistics --since TIME"
                    report.problems.append("\(target.entity): \(error); \(advice)")
                }
            }
        }
    }

    /// Ends the connection.
    package func close() { client.close() }

    private func findTargets(_ series: [String: [StatisticsQuantity]]) throws(HomeAssistantError) {
        let statistics = try means()
        for entry in try client.request("config/entity_registry/list").elements.map({ JSONObject($0) }) {
            guard entry["platform"]?.text == "mqtt", let id = entry["unique_id"]?.text, let quantities = series[id],
                let entity = entry["entity_id"]?.text, entity.utf8.count <= Self.longestEntity,
                let metadata = statistics[entity]
            else { continue }
            addTargets(entity, quantities, metadata)
        }
    }

    /// Returns the statistics with arithmetic means by their entities, also those that Home Assistant has yet to begin.
    private func means() throws(HomeAssistantError) -> [String: JSONObject] {
        let list = try client.request("recorder/list_statistic_ids") { writer in
            writer.key("statistic_type")
            writer.string("mean")
        }
        let objects = list.elements.map { JSONObject($0) }.filter { statistic in
            let isArithmetic =
                statistic["mean_type"].map { $0 == .integer(1) } ?? (statistic["has_mean"] == .boolean(true))
            return isArithmetic && statistic["has_sum"] != .boolean(true) && statistic["source"]?.text == "recorder"
        }
        return Dictionary(objects.map { ($0["statistic_id"]?.text ?? "", $0) }) { first, _ in first }
    }

    /// Adds an entity; history may have its metric in several units, for example of an older profile.
    private func addTargets(_ entity: String, _ quantities: [StatisticsQuantity], _ metadata: JSONObject) {
        report.entities.insert(entity)
        let unit = metadata["statistics_unit_of_measurement"]?.text
        let unitClass = metadata["unit_class"]?.text
        var isConvertible = false
        for quantity in quantities {
            guard let conversion = StatisticsUnit(from: quantity.unit, to: unit) else { continue }
            let target = Target(entity: entity, unit: unit, unitClass: unitClass, conversion: conversion)
            targets[quantity, default: []].append(target)
            isConvertible = true
        }
        guard !isConvertible else { return }
        let units = "'\(quantities.first?.unit ?? "")' into '\((unit ?? "").cut(toBytes: Self.longestUnit))'"
        let advice = "choose the unit of the metric in the entity's settings"
        report.problems.append("\(entity): no conversion of \(units) is known; \(advice)")
    }

    private func add(_ summaries: [HourSummary], to target: Target) throws(HomeAssistantError) {
        _ = try client.request("recorder/import_statistics") { writer in
            writer.key("metadata")
            writeMetadata(of: target, to: &writer)
            writer.key("stats")
            writer.array(summaries) { writer, summary in
                writer.beginObject()
                writer.key("start")
                writer.timestamp(summary.start)
                for (name, value) in [("min", summary.min), ("mean", summary.mean), ("max", summary.max)] {
                    writer.key(name)
                    writer.real(target.conversion.convert(value))
                }
                writer.endObject()
            }
        }
    }

    private func writeMetadata(of target: Target, to writer: inout JSONWriter) {
        let isExplicit = !version.lexicographicallyPrecedes(Self.explicitMetadata)
        writer.beginObject()
        var members: [(String, SampleValue)] = [
            ("source", .text("recorder")), ("statistic_id", .text(target.entity)), ("name", .null),
            ("unit_of_measurement", target.unit.map { .text($0) } ?? .null), ("has_sum", .boolean(false)),
        ]
        if isExplicit {
            // 1 is the arithmetic mean.
            members += [("mean_type", .integer(1)), ("unit_class", target.unitClass.map { .text($0) } ?? .null)]
        } else {
            members.append(("has_mean", .boolean(true)))
        }
        for (name, value) in members {
            writer.key(name)
            writer.value(value)
        }
        writer.endObject()
    }

    /// The year and the month of Home Assistant's version.
    private var version: [Int] { client.version.split(separator: ".").prefix(2).map { Int($0) ?? 0 } }
}
