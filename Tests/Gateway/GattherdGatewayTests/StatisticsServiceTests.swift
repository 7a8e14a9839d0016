import Foundation
import GattherdConfig
import GattherdHistory
import GattherdLog
import GattherdModel
import GattherdSync
import TestKit
import Testing

@testable import GattherdGateway

/// The import of hours into a server that answers as Home Assistant does.
@Suite(.timeLimit(.minutes(1))) struct StatisticsServiceTests {
    private static let hour = Duration.seconds(3600)
    /// 2026-11-21T03:00:00Z.
    private static let start = Timestamp(microseconds: 1_795_230_000_000_000)
    private static let stream = StreamDefinition(
        device: "weather",
        profile: "test",
        stream: "env",
        metrics: [MetricDescriptor(name: "temperature", unit: "°C"), MetricDescriptor(name: "door", kind: .state)]
    )

    private let folder: TemporaryFolder
    private let home: FakeHomeAssistant
    private let lines = Locked<[String]>([])
    /// The wall clock, and whether it is synchronised.
    private let clock = Locked((now: Self.start, isSynchronised: true))

    init() throws {
        folder = try TemporaryFolder()
        home = try FakeHomeAssistant { content in
            let id = "gattherd_attic_c0ffee000020_env-temperature"
            content.add("sensor.weather_temperature", uniqueID: id, unit: "°C")
        }
        try Data("a-token\n".utf8).write(to: URL(filePath: folder.file("token")))
    }

    private var path: String { folder.file("history.db") }
    private var cursor: StatisticsCursor { StatisticsCursor(path: folder.file(StatisticsCursor.name)) }

    private func service() throws -> StatisticsService {
        var clocks = GatewayClock(now: { [clock] in clock.withLock(\.now) })
        clocks.isSynchronised = { [clock] in clock.withLock(\.isSynchronised) }
        clocks.earliest = Self.start.advanced(by: .seconds(-86_400))
        let log = Log(threshold: .notice) { [lines] entry in lines.withLock { $0.append(entry.message) } }
        return StatisticsService(try importer(), folder: folder.path, log: log, clock: clocks)
    }

    private func importer() throws -> StatisticsImporter {
        let url = try #require(ServerURL(home.url))
        let settings = StatisticsSettings(url: Located(url), tokenFile: Located(folder.file("token")))
        return StatisticsImporter(settings, gateway: "attic", path: path)
    }

    /// Writes a temperature of 10 and one of 20 plus its number into each hour from ``start``.
    private func writeHistory(hours: Int) async throws { try await writeHistory(hours: Array(0..<hours)) }

    private func writeHistory(hours: [Int]) async throws {
        let log = Log(threshold: .error) { _ in }
        let end = Self.start.advanced(by: Self.hour * ((hours.last ?? 0) + 1))
        let options = HistoryOptions(path: path, consumers: [], clock: GatewayClock { end })
        let history = try await ReadingHistory.open(options, log: log)
        try await history.record(DeviceRecord(device: "weather", address: "C0:FF:EE:00:00:20"), seenAt: Self.start)
        for hour in hours {
            var batch = ReadingBatch()
            for (minute, value) in [(1, 10.0), (59, 20.0 + Double(hour))] {
                let first = batch.samples.count
                batch.samples += [Sample(metric: 0, value: .real(value)), Sample(metric: 1, value: .boolean(true))]
                let time = Self.start.advanced(by: Self.hour * hour + .seconds(60 * minute))
                batch.readings.append(
                    Reading(stream: Self.stream, time: time, source: .read, samples: first..<(first + 2))
                )
            }
            try await history.append(batch)
        }
        try await history.close()
    }

    /// Writes a temperature of 40 of another stream, which has an entity of its own.
    private func writeIndoorTemperature(at time: Duration) async throws {
        let stream = StreamDefinition(
            device: "weather",
            profile: "test",
            stream: "indoor",
            metrics: [MetricDescriptor(name: "temperature", unit: "°C")]
        )
        let time = Self.start.advanced(by: time)
        let options = HistoryOptions(path: path, consumers: [], clock: GatewayClock { time })
        let history = try await ReadingHistory.open(options, log: .silent)
        var batch = ReadingBatch()
        batch.samples = [Sample(metric: 0, value: .real(40))]
        batch.readings = [Reading(stream: stream, time: time, source: .read, samples: 0..<1)]
        try await history.append(batch)
        try await history.close()
        home.content.update { content in
            let id = "gattherd_attic_c0ffee000020_indoor-temperature"
            content.add("sensor.weather_indoor", uniqueID: id, unit: "°C")
        }
    }

    /// Performs a step of the service, on a thread of its own.
    private func step(_ service: StatisticsService, at time: Duration) async -> StatisticsService.Outcome? {
        clock.withLock { $0.now = Self.start.advanced(by: time) }
        return await NamedThread.result(name: "test") { service.importNewHours() }
    }

    private func imported() throws -> [[Double]] {
        try home.content.state.imports.flatMap { text in
            let message = try JSONDecoder().decode(Message.self, from: Data(text.utf8))
            #expect(message.metadata.statistic_id == "sensor.weather_temperature")
            return message.stats.map { [$0.min, $0.mean, $0.max] }
        }
    }

    private struct Message: Decodable {
        struct Metadata: Decodable { let statistic_id: String }
        struct Row: Decodable {
            let start: String
            let min, mean, max: Double
        }
        let metadata: Metadata
        let stats: [Row]
    }

    @Test func `each completed hour is imported once, as the view has it`() async throws {
        try await writeHistory(hours: 3)
        let service = try service()
        #expect(await step(service, at: .seconds(60)) == .done)
        #expect(try imported().isEmpty)
        // Home Assistant makes its own statistics first.
        #expect(await step(service, at: .seconds(3600 + 299)) == .done)
        #expect(try imported().isEmpty)
        #expect(await step(service, at: .seconds(3600 + 300)) == .done)
        #expect(try imported() == [[10, 15, 20]])
        #expect(await step(service, at: .seconds(3600 + 900)) == .done)
        #expect(try imported() == [[10, 15, 20]])
        #expect(await step(service, at: .seconds(3 * 3600 + 300)) == .done)
        let rows = try await SQLiteShell(path).rows(
            "SELECT min, mean, max FROM history_hours WHERE metric = 'temperature'"
        )
        #expect(try imported() == rows.map { $0.compactMap { Double($0) } })
        #expect(service.status.delivered == 3)
        #expect(service.status.state == .idle)
    }

    @Test func `hours of an outage are imported after it, and a restart forgets none`() async throws {
        try await writeHistory(hours: 50)
        #expect(await step(try service(), at: .zero) == .done)
        home.content.update { $0.state = "STARTING" }
        let service = try service()
        for hour in 1...3 { #expect(await step(service, at: .seconds(3600 * hour + 400)) == .failed) }
        #expect(service.status.state == .waiting)
        #expect(service.status.problem?.contains("starting") == true)
        #expect(lines.withLock { $0 } == ["statistics cannot be imported into Home Assistant"])
        home.content.update { $0.state = "RUNNING" }
        #expect(await step(try self.service(), at: .seconds(3600 * 50 + 400)) == .done)
        #expect(try imported().count == 50)
        #expect(home.content.state.imports.count == 3)
        #expect(await step(service, at: .seconds(3600 * 50 + 500)) == .done)
        #expect(try imported().count == 50)
    }

    @Test func `an import that fails half-way continues where it ended`() async throws {
        try await writeHistory(hours: 30)
        let importer = try importer()
        let times = Self.start..<Self.start.advanced(by: Self.hour * 30)
        let reached = Locked<[Timestamp]>([])
        let report = await NamedThread.result(name: "test") { [home] in
            try? importer.run(times, isCancelled: { false }) { end in
                reached.withLock { $0.append(end) }
                home.content.update { $0.answers["recorder/import_statistics"] = [.close] }
            }
        }
        #expect(report == .some(nil))
        #expect(reached.withLock { $0 } == [Self.start.advanced(by: Self.hour * 24)])
        #expect(try imported().count == 24)
    }

    @Test func `hours wait while Home Assistant refuses every entity`() async throws {
        try await writeHistory(hours: 30)
        let service = try service()
        #expect(await step(service, at: .zero) == .done)
        home.content.update { $0.refusedImport = .init("sensor.weather_temperature", code: "invalid_format") }
        #expect(await step(service, at: .seconds(30 * 3600 + 300)) == .failed)
        #expect(cursor.read()?.next == Self.start)
        #expect(service.status.state == .waiting)
        #expect(service.status.problem?.contains("all statistics") == true)
        home.content.update { $0.refusedImport = nil }
        #expect(await step(service, at: .seconds(30 * 3600 + 400)) == .done)
        #expect(try imported().count == 30)
        #expect(cursor.read()?.next == Self.start.advanced(by: Self.hour * 30))
    }

    @Test func `a refused entity does not end the import of another one with later hours`() async throws {
        try await writeHistory(hours: 1)
        try await writeIndoorTemperature(at: Self.hour * 30 + .seconds(120))
        home.content.update { $0.refusedImport = .init("sensor.weather_temperature", code: "invalid_format") }
        let service = try service()
        #expect(await step(service, at: .zero) == .done)
        #expect(await step(service, at: Self.hour * 31 + .seconds(300)) == .done)
        #expect(home.content.state.imports.map { $0.contains("sensor.weather_indoor") } == [true])
        #expect(cursor.read()?.next == Self.start.advanced(by: Self.hour * 31))
    }

    @Test func `hours that are refused for 30 days are passed over, with one message`() async throws {
        let days = 24 * 30
        try await writeHistory(hours: [0, 25, days + 20])
        let service = try service()
        #expect(await step(service, at: .zero) == .done)
        home.content.update { $0.refusedImport = .init("sensor.weather_temperature", code: "invalid_format") }
        for hour in [24, 26] {
            #expect(await step(service, at: Self.hour * (days + hour) + .seconds(300)) == .failed)
            #expect(cursor.read()?.next == Self.start.advanced(by: Self.hour * hour))
            #expect(cursor.read()?.first == Self.start)
        }
        let passed = lines.withLock { $0.filter { $0.contains("passed over after 30 days") } }
        #expect(passed.count == 1)
        home.content.update { $0.refusedImport = nil }
        #expect(await step(service, at: Self.hour * (days + 26) + .seconds(400)) == .done)
        #expect(try imported().map { $0[2] } == [20 + Double(days + 20)])
        #expect(cursor.read()?.next == Self.start.advanced(by: Self.hour * (days + 26)))
    }

    @Test func `empty hours before the refused ones are not passed over, but done`() async throws {
        let days = 24 * 30
        try await writeHistory(hours: [0, days + 20])
        let service = try service()
        #expect(await step(service, at: .zero) == .done)
        #expect(await step(service, at: Self.hour + .seconds(300)) == .done)
        home.content.update { $0.refusedImport = .init("sensor.weather_temperature", code: "invalid_format") }
        #expect(await step(service, at: Self.hour * (days + 26) + .seconds(300)) == .failed)
        #expect(cursor.read()?.next == Self.start.advanced(by: Self.hour * (days + 1)))
        #expect(lines.withLock { $0.filter { $0.contains("passed over") } } == [])
    }

    @Test func `hours of an outage wait for more than 30 days`() async throws {
        let days = 24 * 30
        try await writeHistory(hours: [0, days + 20])
        let service = try service()
        #expect(await step(service, at: .zero) == .done)
        home.content.update { $0.state = "STARTING" }
        #expect(await step(service, at: Self.hour * (days + 24) + .seconds(300)) == .failed)
        #expect(cursor.read()?.next == Self.start)
    }

    @Test func `hours with values that came late are imported again with the next hour`() async throws {
        try await writeHistory(hours: 4)
        let service = try service()
        #expect(await step(service, at: .zero) == .done)
        #expect(await step(service, at: .seconds(3 * 3600 + 300)) == .done)
        var batch = ReadingBatch()
        // The oldest is older than Home Assistant needs it, the newest belongs to an hour that is not imported yet.
        for time in [Duration.seconds(-40 * 86_400), .seconds(2 * 3600), .seconds(4000), .seconds(3 * 3600 + 299)] {
            let time = Self.start.advanced(by: time)
            batch.readings.append(Reading(stream: Self.stream, time: time, source: .read, samples: 0..<0))
        }
        service.observe(batch)
        #expect(await step(service, at: .seconds(3 * 3600 + 400)) == .done)
        // The hour is remembered over a restart, but Home Assistant is asked once an hour only.
        #expect(cursor.read()?.next == Self.start.advanced(by: Self.hour))
        #expect(try imported().count == 3)
        #expect(await step(service, at: .seconds(4 * 3600 + 300)) == .done)
        #expect(try imported().map { $0[2] } == [20, 21, 22, 21, 22, 23])
        #expect(cursor.read()?.next == Self.start.advanced(by: Self.hour * 4))
    }

    @Test func `all hours are imported again after a correction of times`() async throws {
        try await writeHistory(hours: 4)
        let service = try service()
        service.didCorrectTimes()
        #expect(await step(service, at: .zero) == .done)
        #expect(await step(service, at: .seconds(3 * 3600 + 300)) == .done)
        #expect(try imported().count == 3, "nothing was imported before the correction")
        service.didCorrectTimes()
        #expect(await step(service, at: .seconds(4 * 3600 + 300)) == .done)
        #expect(try imported().map { $0[2] } == [20, 21, 22, 20, 21, 22, 23])
        #expect(cursor.read()?.next == Self.start.advanced(by: Self.hour * 4))
    }

    @Test func `no correction imports hours from before the first import`() async throws {
        try await writeHistory(hours: 4)
        let service = try service()
        #expect(await step(service, at: .seconds(2 * 3600)) == .done)
        #expect(await step(service, at: .seconds(3 * 3600 + 300)) == .done)
        service.didCorrectTimes()
        #expect(await step(service, at: .seconds(4 * 3600 + 300)) == .done)
        #expect(try imported().map { $0[2] } == [22, 22, 23])
    }

    @Test func `streams with one metric name have statistics of their own`() async throws {
        try await writeHistory(hours: 1)
        try await writeIndoorTemperature(at: .seconds(120))
        let service = try service()
        #expect(await step(service, at: .zero) == .done)
        #expect(await step(service, at: .seconds(3600 + 300)) == .done)
        let messages = try home.content.state.imports.map {
            try JSONDecoder().decode(Message.self, from: Data($0.utf8))
        }
        let means = messages.map { ($0.metadata.statistic_id, $0.stats.map(\.mean)) }
        let found = Dictionary(means, uniquingKeysWith: +)
        #expect(found == ["sensor.weather_temperature": [15], "sensor.weather_indoor": [40]])
    }

    @Test func `a clock that is certainly wrong imports nothing, and a later one ends a cursor in the future`()
        async throws
    {
        try await writeHistory(hours: 1)
        let service = try service()
        #expect(await step(service, at: .seconds(-2 * 86_400)) == .done)
        #expect(cursor.read()?.next == nil)
        let future = Self.start.advanced(by: .seconds(7 * 86_400))
        try cursor.write(StatisticsCursor.Hours(next: future, first: future))
        clock.withLock { $0.isSynchronised = false }
        #expect(await step(service, at: .seconds(60)) == .done)
        #expect(cursor.read()?.next == future)
        clock.withLock { $0.isSynchronised = true }
        #expect(await step(service, at: .seconds(60)) == .done)
        #expect(cursor.read()?.next == Self.start)
    }

    @Test func `a cursor that cannot be saved is a problem until it can`() async throws {
        try FileManager.default.createDirectory(atPath: cursor.path, withIntermediateDirectories: true)
        let service = try service()
        #expect(await step(service, at: .zero) == .failed)
        #expect(service.status.state == .waiting)
        try FileManager.default.removeItem(atPath: cursor.path)
        #expect(await step(service, at: .seconds(60)) == .done)
        #expect(await step(service, at: .seconds(120)) == .done)
        #expect(service.status.state == .idle)
        #expect(service.status.problem == nil)
    }

    @Test(arguments: ["", "x", "2026-11-21", String(repeating: "1", count: 200)])
    func `a damaged cursor begins with the current hour`(text: String) async throws {
        try Data(text.utf8).write(to: URL(filePath: cursor.path))
        #expect(await step(try service(), at: .seconds(60)) == .done)
        #expect(cursor.read()?.next == Self.start)
    }

    @Test func `a token that cannot be read names its file`() async throws {
        try FileManager.default.removeItem(atPath: folder.file("token"))
        try cursor.write(StatisticsCursor.Hours(next: Self.start, first: Self.start))
        try await writeHistory(hours: 1)
        let service = try service()
        #expect(await step(service, at: .seconds(4000)) == .failed)
        #expect(service.status.problem?.contains("token") == true)
        #expect(home.content.state.logins == 0)
    }

    @Test func `the service imports at its start and stops at once`() async throws {
        try cursor.write(StatisticsCursor.Hours(next: Self.start, first: Self.start))
        try await writeHistory(hours: 1)
        clock.withLock { $0.now = Self.start.advanced(by: .seconds(4000)) }
        let service = try service()
        async let running: Void = service.run()
        for await content in home.content.watch() where !content.imports.isEmpty { break }
        await service.stop(within: .zero)
        await running
        #expect(service.status.state == .stopped)
        #expect(try imported() == [[10, 15, 20]])
    }

    @Test func `the token file is checked, and a token without encryption is a warning`() throws {
        func findings(_ url: String, _ file: String) throws -> [String] {
            var settings = MQTTSettings(broker: BrokerAddress(host: "localhost", port: 1883), gateway: "attic")
            let address = try #require(ServerURL(url))
            settings.homeAssistant.statistics = StatisticsSettings(url: Located(address), tokenFile: Located(file))
            return settings.findings.map { "\($0.severity) \($0.problem.kind)" }
        }
        let file = folder.file("token")
        #expect(unsafe chmod(file, 0o600) == 0)
        #expect(try findings("http://localhost:8123", file).isEmpty)
        #expect(try findings("https://home.lan", file).isEmpty)
        #expect(try findings("http://home.lan:8123", file) == ["warning exposed_secret"])
        #expect(try findings("http://localhost:8123", folder.file("none")) == ["error unusable_file"])
    }
}
