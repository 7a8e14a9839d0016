package import GattherdConfig
import GattherdDelivery
import GattherdHTTPClient
import GattherdHistory
package import GattherdHomeAssistant
package import GattherdModel

/// Imports the summaries of hours from the history into Home Assistant.
package struct StatisticsImporter: Sendable {
    /// The time after the end of an hour in which Home Assistant makes statistics of its own.
    ///
    /// Home Assistant needs a few seconds. If an entity has statistics of the hour already, Home Assistant makes none
    /// of that hour, for any entity.
    package static let delay = Duration.seconds(300)
    private static let hour: Int64 = 3_600_000_000
    /// The hours that are read at once.
    private static let chunk = 24 * hour

    /// The token, if the caller has read its file.
    package var token: String?
    private let settings: StatisticsSettings
    private let gateway: String
    private let path: String

    /// - Parameters:
    ///   - settings: The section of the configuration.
    ///   - gateway: The gateway's name.
    ///   - path: The database of the history.
    package init(_ settings: StatisticsSettings, gateway: String, path: String) {
        (self.settings, self.gateway, self.path) = (settings, gateway, path)
    }

    /// Home Assistant's URL.
    package var target: String { settings.url.value.description }

    /// The first instant that is in no completed hour.
    package static func end(at now: Timestamp) -> Timestamp { hourStart(now.advanced(by: .zero - delay)) }

    /// The start of the hour.
    package static func hourStart(_ time: Timestamp) -> Timestamp { time.rounded(downTo: hour) }

    /// Imports the hours that begin in a range; blocks.
    ///
    /// - Parameters:
    ///   - times: The range; its bounds are starts of hours.
    ///   - isCancelled: Returns true to end soon.
    ///   - progress: Receives the instant up to which all hours are imported, except those of refused entities.
    /// - Returns: The entities and the number of hours.
    /// - Throws: ``HomeAssistantError``, also if entities are refused and none is accepted; hours that
    ///   `progress` has reported stay imported.
    package func run(
        _ times: Range<Timestamp>,
        isCancelled: @escaping () -> Bool = { false },
        progress: (Timestamp) -> Void = { _ in }
    ) throws(HomeAssistantError) -> StatisticsReport {
        let (reader, series, first) = try read { () throws(StoreFault) in
            let reader = try HistoryReader(path: path)
            return (reader, try self.series(reader), try reader.extent(withSummaries: true)?.lowerBound)
        }
        let server = try server()
        let session = try StatisticsSession(server, series, until: times.upperBound, isCancelled: isCancelled)
        var start = max(times.lowerBound, Self.hourStart(first ?? times.upperBound))
        while start < times.upperBound, !session.refusesAll {
            let end = min(times.upperBound, Timestamp(microseconds: start.microseconds + Self.chunk))
            let hours = try read { () throws(StoreFault) in try Self.hours(reader, start..<end) }
            try session.add(hours)
            if session.refusal == nil { progress(end) }
            start = end
        }
        session.close()
        if let refusal = session.refusal { throw refusal }
        return session.report
    }

    /// The metrics by the ids of the entities that MQTT discovery announces for them.
    private func series(_ reader: HistoryReader) throws(StoreFault) -> [String: [StatisticsQuantity]] {
        let addresses = try reader.deviceRecords().map { ($0.record.device, $0.record.address) }
        let devices = Dictionary(addresses) { first, _ in first }
        var series: [String: [StatisticsQuantity]] = [:]
        for gauge in try reader.gauges() {
            guard let address = devices[gauge.device] else { continue }
            let device = HomeAssistantIdentity.device(address, of: gateway)
            let key = HomeAssistantIdentity.key(stream: gauge.stream, metric: gauge.metric)
            let quantity = StatisticsQuantity(
                device: gauge.device,
                stream: gauge.stream,
                metric: gauge.metric,
                unit: gauge.unit
            )
            series[HomeAssistantIdentity.entity(key, of: device), default: []].append(quantity)
        }
        return series
    }

    private static func hours(
        _ reader: HistoryReader,
        _ times: Range<Timestamp>
    ) throws(StoreFault) -> [StatisticsQuantity: [HourSummary]] {
        var hours: [StatisticsQuantity: [HourSummary]] = [:]
        let query = HistoryQuery(since: times.lowerBound, until: times.upperBound)
        try reader.buckets(query, every: .seconds(3600)) { bucket in
            guard let min = bucket.min.number, let max = bucket.max.number, bucket.mean.isFinite else { return true }
            let quantity = StatisticsQuantity(
                device: bucket.device,
                stream: bucket.stream,
                metric: bucket.metric,
                unit: bucket.unit
            )
            let summary = HourSummary(start: bucket.time, min: min, mean: bucket.mean, max: max)
            hours[quantity, default: []].append(summary)
            return true
        }
        return hours
    }

    private func server() throws(HomeAssistantError) -> HomeAssistantServer {
        let (file, url) = (SecretFile(path: settings.tokenFile.value), settings.url.value)
        let token = self.token ?? file.firstLine ?? ""
        guard !token.isEmpty, token.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            let advice = "write the access token into its first line"
            throw HomeAssistantError(
                .misconfigured,
                file.unreadable("token") ?? "'\(file.path)' has no token; \(advice)"
            )
        }
        var server = HomeAssistantServer(url: url.description, host: url.authority, path: url.path, token: token)
        server.files = HTTPTLSFiles(
            ca: settings.ca?.value,
            certificate: settings.certificate?.value,
            key: settings.key?.value
        )
        return server
    }

    private func read<Value>(_ body: () throws(StoreFault) -> Value) throws(HomeAssistantError) -> Value {
        do throws(StoreFault) { return try body() } catch { throw HomeAssistantError(.history, error.detail) }
    }
}

extension SampleValue {
    /// The finite number, if it is one.
    fileprivate var number: Double? {
        switch self {
        case .integer(let number): Double(number)
        case .real(let number): number.isFinite ? number : nil
        default: nil
        }
    }
}
