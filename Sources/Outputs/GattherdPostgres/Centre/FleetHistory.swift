package import GattherdModel

/// The history of all gateways: queries at the centre.
package struct FleetHistory: Sendable {
    /// A selection; `nil` means all.
    package struct Query: Hashable, Sendable {
        package var device: String?
        /// The address of a device, instead of its name: of each gateway, the device that had it last.
        package var address: String?
        package var stream: String?
        package var metric: String?
        /// The first instant.
        package var since: Timestamp?
        /// The first instant after the selection.
        package var until: Timestamp?

        package init(
            device: String? = nil,
            address: String? = nil,
            stream: String? = nil,
            metric: String? = nil,
            since: Timestamp? = nil,
            until: Timestamp? = nil
        ) {
            (self.device, self.address, self.stream, self.metric) = (device, address, stream, metric)
            (self.since, self.until) = (since, until)
        }
    }

    /// One sample of a gateway.
    package struct Row: Hashable, Sendable {
        package let gateway: String
        package let time: Timestamp
        package let seq: Int64
        package let device: String
        package let metric: String
        package let value: SampleValue
        package let unit: String?
        package let source: String
        package let stream: String
    }

    /// The summary of one metric of a stream in a time span, of the numbers that one gateway delivered.
    package struct Bucket: Hashable, Sendable {
        package let gateway: String
        package let time: Timestamp
        package let device: String
        package let stream: String
        package let metric: String
        package let unit: String?
        package let n: Int
        package let min: Double
        package let mean: Double
        package let max: Double
    }

    private let fleet: FleetDatabase
    package let query: Query

    package init(_ fleet: FleetDatabase, _ query: Query) {
        (self.fleet, self.query) = (fleet, query)
    }

    /// Passes samples to `body`, oldest first, until it returns false.
    package func rows(_ body: (Row) -> Bool) async throws(FleetDatabase.Failure) {
        let sql = """
            SELECT gateway, ts, seq, device, metric, coalesce(whole::text, value::text), label, unit, source,
                stream
            FROM gattherd.history WHERE \(filter(query.times))
            ORDER BY ts, gateway, seq, metric, element NULLS FIRST
            """
        try await fleet.read(sql, query.names) { cells in Row(cells).map(body) ?? true }
    }

    /// Passes summaries to `body`, oldest span first, until it returns false.
    ///
    /// Whole hours and minutes are read from their summaries, the rest from samples.
    package func buckets(every step: Duration, _ body: (Bucket) -> Bool) async throws(FleetDatabase.Failure) {
        let step = max(1, Timestamp(microseconds: 0).advanced(by: step).microseconds)
        let parts = FleetSpan.parts(of: query.times, step: step).map { "(\($0.sql) AND \(filter($0.times)))" }
        guard !parts.isEmpty else { return }
        let sql = """
            SELECT gateway, gattherd.floored(ts, \(step)), device, metric, unit, sum(n), min(low),
                gattherd.mean(sum(total), sum(n)::bigint), max(high), stream
            FROM (\(parts.joined(separator: " UNION ALL "))) AS part
            GROUP BY 1, 2, 3, 4, 5, 10 ORDER BY 2, 1, 3, 4, 10, 5
            """
        try await fleet.read(sql, query.names) { cells in Bucket(cells).map(body) ?? true }
    }

    /// Returns the times of the numbers, to the hour; `nil` if there are none.
    ///
    /// The hours in which the selection begins and ends count only with their selected numbers.
    package func extent() async throws(FleetDatabase.Failure) -> ClosedRange<Timestamp>? {
        let parts = FleetSpan.parts(of: query.times, step: FleetSpan.Tier.hours.rawValue).map { span in
            let rows = "\(span.sql) AND \(filter(span.times))"
            return "SELECT ts AS first, ts + \(span.tier.rawValue - 1) AS last FROM (\(rows)) AS part"
        }
        guard !parts.isEmpty else { return nil }
        let sql = "SELECT min(first), max(last) FROM (\(parts.joined(separator: " UNION ALL "))) AS parts"
        let cells = try await fleet.rows(sql, query.names).first ?? []
        guard cells.count == 2, let low = cells[0].flatMap({ Int64($0) }), let high = cells[1].flatMap({ Int64($0) }),
            low <= high
        else { return nil }
        return Timestamp(microseconds: low)...Timestamp(microseconds: high)
    }

    /// Returns the devices that have a history.
    package func devices() async throws(FleetDatabase.Failure) -> [String] {
        try await fleet.rows("SELECT DISTINCT device FROM gattherd.series ORDER BY 1").compactMap { $0.first ?? nil }
    }

    /// Returns the streams of the selected devices.
    package func streams() async throws(FleetDatabase.Failure) -> [String] {
        let sql = "SELECT DISTINCT stream FROM gattherd.series WHERE \(deviceFilter) ORDER BY 1"
        return try await fleet.rows(sql, [query.target]).compactMap { $0.first ?? nil }
    }

    /// Returns the metrics of the selected devices.
    package func metrics() async throws(FleetDatabase.Failure) -> [String] {
        let sql = "SELECT DISTINCT metric FROM gattherd.series WHERE \(deviceFilter) ORDER BY 1"
        return try await fleet.rows(sql, [query.target]).compactMap { $0.first ?? nil }
    }

    /// Returns true if a gateway has, or had, a device with this address.
    package func knows(address: String) async throws(FleetDatabase.Failure) -> Bool {
        try await !fleet.rows("SELECT 1 FROM gattherd.devices WHERE address = $1 LIMIT 1", [address]).isEmpty
    }

    private var deviceFilter: String {
        guard query.address != nil else { return "($1::text IS NULL OR device = $1)" }
        return """
            (gateway, device) IN (
                SELECT DISTINCT ON (d.gateway) d.gateway, d.device FROM gattherd.devices d WHERE d.address = $1
                ORDER BY d.gateway, d.last_seen DESC NULLS LAST
            )
            """
    }

    private func filter(_ times: Range<Int64>) -> String {
        """
        \(deviceFilter) AND ($2::text IS NULL OR metric = $2)
        AND ($3::text IS NULL OR stream = $3)
        AND ts >= '\(times.lowerBound)'::bigint AND ts < '\(times.upperBound)'::bigint
        """
    }
}

extension FleetHistory.Query {
    /// The arguments of the filter.
    fileprivate var names: [String?] { [target, metric, stream] }

    /// The argument of the filter of devices.
    fileprivate var target: String? { address ?? device }

    var times: Range<Int64> {
        let start = since?.microseconds ?? .min
        return start..<max(start, until?.microseconds ?? .max)
    }
}

extension FleetHistory.Row {
    /// Reads a row; `nil` if the columns are not those of the query.
    fileprivate init?(_ cells: [String?]) {
        guard cells.count == 10, let time = cells[1].flatMap({ Int64($0) }), let seq = cells[2].flatMap({ Int64($0) })
        else { return nil }
        let number = cells[5].flatMap { text in
            Int64(text).map { SampleValue.integer($0) } ?? Double(text).map { SampleValue.real($0) }
        }
        self.init(
            gateway: cells[0] ?? "",
            time: Timestamp(microseconds: time),
            seq: seq,
            device: cells[3] ?? "",
            metric: cells[4] ?? "",
            value: cells[6].map { SampleValue.text($0) } ?? number ?? .null,
            unit: cells[7],
            source: cells[8] ?? "",
            stream: cells[9] ?? ""
        )
    }
}

extension FleetHistory.Bucket {
    /// Reads a row; `nil` if the columns are not those of the query.
    fileprivate init?(_ cells: [String?]) {
        guard cells.count == 10, let time = cells[1].flatMap({ Int64($0) }), let n = cells[5].flatMap({ Int($0) })
        else { return nil }
        let numbers = cells[6...8].compactMap { $0.flatMap { Double($0) } }
        guard numbers.count == 3 else { return nil }
        self.init(
            gateway: cells[0] ?? "",
            time: Timestamp(microseconds: time),
            device: cells[2] ?? "",
            stream: cells[9] ?? "",
            metric: cells[3] ?? "",
            unit: cells[4],
            n: n,
            min: numbers[0],
            mean: numbers[1],
            max: numbers[2]
        )
    }
}
