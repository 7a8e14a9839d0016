import CSQLite
import GattherdLog
import GattherdModel
import TestKit
import Testing

@testable import GattherdHistory

@Suite(.timeLimit(.minutes(3)))
struct RollupTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func open() throws(StoreFault) -> HistoryFile {
        try HistoryFile(path: folder.database, consumers: .one, log: .silent)
    }

    private func finishUpkeep(_ file: HistoryFile) throws(StoreFault) {
        while file.isUpkeepDue { try file.upkeep() }
    }

    /// Expects the views to equal the summaries that plain SQL computes from `history`.
    private func expectAgreement(_ comment: Comment? = nil, _ location: SourceLocation = #_sourceLocation) throws {
        for (view, step) in [("history_minutes", 60_000_000), ("history_hours", 3_600_000_000)] {
            let truth = """
                SELECT ts - (ts % \(step) + \(step)) % \(step) AS start, device, metric, unit, count(*), min(value),
                    avg(value), max(value)
                FROM history WHERE typeof(value) IN ('integer', 'real') GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
                """
            let rows = try texts("SELECT ts, device, metric, unit, n, min, mean, max FROM \(view) ORDER BY 1, 2, 3, 4")
            #expect(try texts(truth) == rows, comment, sourceLocation: location)
        }
    }

    /// The rows that a reader of eight columns gets.
    private func texts(_ sql: String) throws(StoreFault) -> [[String]] {
        let statement = try Statement(sql, on: SQLiteConnection(path: folder.database, flags: SQLITE_OPEN_READONLY))
        var rows: [[String]] = []
        while try statement.step() { rows.append((0..<8).map { statement.text($0) }) }
        return rows
    }

    @Test(arguments: 0..<6)
    func `summaries agree with the samples after each commit`(seed: UInt64) throws {
        var random = SplitMix(state: seed)
        var weather = Weather(start: seed == 0 ? -7_200_000_000 : Fixture.epoch.microseconds)
        for round in 0..<4 {
            let file = try open()
            try expectAgreement("round \(round), opened")
            for _ in 0..<4 {
                try bluster(file, &weather, &random)
                try expectAgreement("round \(round)")
            }
            if random.next(below: 2) == 0 { try file.close() }
        }
        let file = try open()
        try finishUpkeep(file)
        try expectAgreement()
        #expect(try file.connection.integer("SELECT count(*) FROM minute") > 10)
        #expect(try file.connection.integer("SELECT count(*) FROM hour") > 1)
    }

    private func bluster(
        _ file: HistoryFile,
        _ weather: inout Weather,
        _ random: inout SplitMix
    ) throws(StoreFault) {
        for _ in 0..<random.next(below: 20) {
            try file.append(weather.next(&random))
            if random.next(below: 3) == 0, file.isUpkeepDue { try file.upkeep() }
        }
    }

    @Test func `a failed step changes nothing, and the next one continues`() throws {
        let file = try open()
        try file.append(minuteByMinute(500))
        let pages = try file.connection.integer("PRAGMA page_count")
        for room in 0..<12 where file.isUpkeepDue {
            try file.connection.execute("PRAGMA max_page_count = \(pages + Int64(room))")
            try? file.upkeep()
            try expectAgreement("\(room)")
        }
        try file.connection.execute("PRAGMA max_page_count = 1000000")
        try finishUpkeep(file)
        try expectAgreement()
    }

    /// Some readings in each of many minutes, of more quantities than fit into one step.
    private func minuteByMinute(_ minutes: Int) -> ReadingBatch {
        var batch = ReadingBatch()
        for minute in 0..<minutes {
            for device in 0..<20 {
                let time = Fixture.epoch.advanced(by: .seconds(60 * minute))
                batch.add(Fixture.plain(device: "d\(device)"), at: time, (0, .integer(Int64(minute * device))))
            }
        }
        return batch
    }

    /// More samples in one minute, which is over, than fit into one step.
    private func openWithDenseMinute() throws -> HistoryFile {
        let file = try open()
        try file.append(.plain((0..<20_000).map { .integer($0) }))
        try file.append(.plain([.integer(1)], at: Fixture.epoch.advanced(by: .seconds(120))))
        return file
    }

    @Test func `a sample stored while its minute is summed up is counted once`() throws {
        let file = try openWithDenseMinute()
        for late in 0..<8 where file.isUpkeepDue {
            try file.upkeep()
            try file.append(.plain([.integer(-1)], at: Fixture.epoch.advanced(by: .microseconds(late * 3000))))
            try expectAgreement("\(late)")
        }
        try finishUpkeep(file)
        try expectAgreement()
    }

    @Test func `a minute is summed up although each commit adds to it`() throws {
        let file = try openWithDenseMinute()
        var steps = 0
        while file.isUpkeepDue, steps < 20 {
            try file.upkeep()
            try file.append(.plain([.integer(-1)], at: Fixture.epoch.advanced(by: .microseconds(steps * 900))))
            steps += 1
        }
        #expect(steps < 20)
        try expectAgreement()
    }

    @Test(arguments: [Double.infinity, -.infinity, .nan])
    func `a late sample that is not finite is stored as unknown and not counted`(value: Double) throws {
        let file = try openWithDenseMinute()
        try finishUpkeep(file)
        try file.append(.plain([.real(value)]))
        try finishUpkeep(file)
        try expectAgreement()
    }

    @Test func `late samples of a failed batch are not counted`() throws {
        let file = try openWithDenseMinute()
        try file.upkeep()
        let quantity = try file.connection.integer("SELECT min(quantity) FROM metric_series")
        #expect(throws: StoreFault.self) {
            try file.commit { () throws(StoreFault) in
                file.rollups.addLate(.integer(-1), of: quantity, at: Fixture.epoch.microseconds)
                try file.rollups.writeLate()
                throw StoreFault("the disk is full", .full)
            }
        }
        try finishUpkeep(file)
        try expectAgreement()
    }

    @Test func `a failed batch leaves summaries unchanged, late samples included`() throws {
        let file = try open()
        try file.append(minuteByMinute(200))
        try finishUpkeep(file)
        let pages = try file.connection.integer("PRAGMA page_count")
        try file.connection.execute("PRAGMA max_page_count = \(pages + 1)")
        #expect(throws: StoreFault.self) { try file.append(.plain((0..<9000).map { .integer($0) })) }
        try expectAgreement()
        try file.connection.execute("PRAGMA max_page_count = 1000000")
        try file.append(.plain([.integer(7)]))
        try expectAgreement()
    }

    @Test func `a file without summaries is correct at once and is summed up step by step`() async throws {
        try await makeFile(samples: 30_000)
        let file = try open()
        #expect(try file.connection.integer("SELECT count(*) FROM minute") == 0)
        try expectAgreement()
        var steps = 0
        while file.isUpkeepDue {
            try file.upkeep()
            steps += 1
            if steps == 2 {
                try file.append(.plain([.integer(5)], at: Fixture.epoch))
                try expectAgreement()
            }
        }
        #expect(steps > 3)
        try expectAgreement()
        #expect(try file.connection.integer("SELECT count(*) FROM minute") > 900)
    }

    /// Two series of one quantity and one of another, a sample a second.
    private func makeFile(samples: Int) async throws {
        let connection = try SQLiteConnection(
            path: folder.database,
            flags: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
        )
        try Schema.migrate(connection, steps: Schema.steps)
        try connection.execute(
            """
            INSERT INTO stream VALUES (1, 'box', 'test', 'plain');
            INSERT INTO quantity VALUES (1, 'box', 'plain', 'value', NULL), (2, 'box', 'plain', 'other', 'V');
            INSERT INTO metric_series (id, stream, metric, unit, kind, repeated, source, quantity)
            VALUES (1, 1, 'value', NULL, 'gauge', 0, 'notify', 1), (2, 1, 'value', NULL, 'gauge', 0, 'read', 1),
                (3, 1, 'other', 'V', 'gauge', 0, 'read', 2);
            WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < \(samples))
            INSERT INTO sample SELECT \(Fixture.epoch.microseconds) + n * 1000000, n, 0, n % 3 + 1, n % 17 FROM n;
            INSERT INTO head SELECT series, max(ts), max(seq), 0 FROM sample GROUP BY series;
            """
        )
    }

    @Test func `the mean does not depend on the order of the samples`() async throws {
        let values: [Double] = [1e16, 1, -1e16, 1, 0.1, 0.2, 0.3, 1e8, 1e-8, -1e8]
        for order in [values, values.reversed(), values.sorted()] {
            let file = try open()
            try file.append(.plain(order.map { .real($0) }))
            try file.append(.plain([.integer(0)], at: Fixture.epoch.advanced(by: .seconds(60))))
            try finishUpkeep(file)
            let mean = try await folder.shell.value("SELECT mean FROM history_minutes ORDER BY ts LIMIT 1")
            #expect(mean == "0.260000001")
            try file.connection.execute("DELETE FROM sample; DELETE FROM minute; UPDATE state SET value = 0")
        }
    }

    @Test func `a query by time searches the summaries by key`() async throws {
        let file = try open()
        for (view, table) in [("history_minutes", "minute"), ("history_hours", "hour")] {
            let plan = try await folder.shell.rows(
                "EXPLAIN QUERY PLAN SELECT * FROM \(view) WHERE ts >= 5 AND device = 'strap' ORDER BY ts"
            )
            let text = plan.joined().joined(separator: "\n")
            #expect(text.contains("SEARCH \(table) USING PRIMARY KEY (ts>?)"), "\(text)")
            #expect(text.contains("SEARCH sample USING PRIMARY KEY (ts>?)"), "\(text)")
        }
        withExtendedLifetime(file) {}
    }

    @Test(
        arguments: [1, 30, 60, 90, 300, 3600, 7200, 86_400]
    )
    func `buckets of any length and time range equal those of the samples`(step: Int) async throws {
        let file = try open()
        var random = SplitMix(state: UInt64(step))
        var weather = Weather(start: Fixture.epoch.microseconds)
        for _ in 0..<100 { try file.append(weather.next(&random)) }
        for sums in [false, true] {
            if sums { try finishUpkeep(file) }
            for _ in 0..<12 {
                let range = weather.randomTimes(&random)
                let query = HistoryQuery(
                    device: ["a", "b", nil].randomElement(using: &random) ?? nil,
                    metric: ["heart_rate", nil].randomElement(using: &random) ?? nil,
                    since: range?.lowerBound,
                    until: range?.upperBound
                )
                #expect(try buckets(query, step) == truth(query, Int64(step)), "\(query)")
            }
        }
        withExtendedLifetime(file) {}
    }

    private func buckets(_ query: HistoryQuery, _ seconds: Int) throws(StoreFault) -> [[String]] {
        var rows: [[String]] = []
        try HistoryReader(path: folder.database).buckets(query, every: .seconds(seconds)) { bucket in
            rows.append([
                "\(bucket.time.microseconds)", bucket.device, bucket.metric, "\(bucket.n)", "\(bucket.min)",
                "\(bucket.mean)", "\(bucket.max)",
            ])
            return true
        }
        return rows
    }

    private func truth(_ query: HistoryQuery, _ seconds: Int64) throws(StoreFault) -> [[String]] {
        let step = seconds * 1_000_000
        var groups: [[String]: [SampleValue]] = [:]
        try HistoryReader(path: folder.database).rows(query) { row in
            let start = row.time.rounded(downTo: step).microseconds
            groups[["\(start)", row.series.device, row.series.metric], default: []].append(row.value)
            return true
        }
        let rows = groups.compactMap { key, values -> [String]? in
            let numbers = values.compactMap { value -> (Double, SampleValue)? in
                switch value {
                case .integer(let number): (Double(number), value)
                case .real(let number): (number, value)
                default: nil
                }
            }
            guard let least = numbers.min(by: { $0.0 < $1.0 }), let most = numbers.max(by: { $0.0 < $1.0 }) else {
                return nil
            }
            let exact = numbers.reduce(0) { $0 + $1.0 } / Double(numbers.count)
            let mean = exact.rounded(toDigits: Double.meaningfulDigits, keepingDecimals: 3)
            return key + ["\(numbers.count)", "\(least.1)", "\(mean)", "\(most.1)"]
        }
        return rows.sorted { ($0[0], $0[1], $0[2]) < ($1[0], $1[1], $1[2]) }
    }
}

/// Batches as a bad clock and several ways of reading make them; all numbers and sums are exact.
private struct Weather {
    private let start: Int64
    private var time: Int64
    private let streams = ["a", "b", "c"].map { Fixture.heartRate($0) }

    init(start: Int64) {
        self.start = start
        time = start
    }

    mutating func next(_ random: inout SplitMix) -> ReadingBatch {
        var batch = ReadingBatch()
        let late = random.next(below: 8) == 0 ? Int64(random.next(below: 9_000_000_000)) : 0
        for _ in 0..<(1 + random.next(below: 40)) {
            time += Int64(random.next(below: 3_000_000))
            let source: ReadingSource = random.next(below: 2) == 0 ? .notify : .read
            let stream = streams[random.next(below: 3)]
            let at = Timestamp(microseconds: time - late)
            batch.add(stream, at: at, by: source, (0, value(&random)), (1, .boolean(true)), (2, value(&random)))
        }
        if random.next(below: 10) == 0 { time += Int64(random.next(below: 7_200_000_000)) }
        return batch
    }

    private func value(_ random: inout SplitMix) -> SampleValue {
        switch random.next(below: 8) {
        case 0: .null
        case 1: .text("label")
        case 2...4: .real(Double(random.next(below: 1000)) / 8 + 0.0625)
        default: .integer(Int64(random.next(below: 300)) - 100)
        }
    }

    func randomTimes(_ random: inout SplitMix) -> Range<Timestamp>? {
        guard random.next(below: 5) > 0 else { return nil }
        let length = UInt64(time - start)
        let ends = (0..<2).map { _ in start + Int64(random.next(below: length)) }.sorted()
        return Timestamp(microseconds: ends[0])..<Timestamp(microseconds: ends[1])
    }
}
