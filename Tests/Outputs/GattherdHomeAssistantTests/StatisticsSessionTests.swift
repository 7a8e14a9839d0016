import GattherdModel
import GattherdSync
import TestKit
import Testing

@testable import GattherdHomeAssistant

/// Imports into a server that answers as Home Assistant does, or not.
@Suite(.timeLimit(.minutes(1))) struct StatisticsSessionTests {
    private static let start = Timestamp(microseconds: 1_795_230_000_000_000)
    private static let hour = HourSummary(start: start, min: 10, mean: 21.25, max: 30)
    private static let quantity = StatisticsQuantity(
        device: "weather",
        stream: "env",
        metric: "temperature",
        unit: "°C"
    )
    /// The metric in the unit of today, and in that of an older profile.
    private static let series = [
        "gattherd_attic_a_env-temperature": [
            StatisticsQuantity(device: "weather", stream: "env", metric: "temperature", unit: nil), quantity,
        ],
        "gattherd_attic_a_twin-temperature": [quantity],
    ]

    /// Imports an hour of the temperature.
    private func report(_ home: FakeHomeAssistant, token: String = "a-token") async throws -> StatisticsReport {
        let host = "127.0.0.1:\(home.port)"
        let server = HomeAssistantServer(url: home.url, host: host, path: "", token: token)
        let result = await NamedThread.result(name: "test") {
            Result { () throws(HomeAssistantError) in
                let session = try StatisticsSession(server, Self.series, until: Self.start.advanced(by: .seconds(3600)))
                try session.add([Self.quantity: [Self.hour]])
                session.close()
                if let refusal = session.refusal { throw refusal }
                return session.report
            }
        }
        return try #require(result).get()
    }

    private func failure(
        token: String = "a-token",
        _ change: @escaping (inout FakeHomeAssistant.Content) -> Void
    ) async throws -> HomeAssistantError? {
        let home = try FakeHomeAssistant(change)
        return await #expect(throws: HomeAssistantError.self) { try await report(home, token: token) }
    }

    private func home(_ version: String = "2025.4.4", unit: String = "°C") throws -> FakeHomeAssistant {
        try FakeHomeAssistant { content in
            content.version = version
            content.add("sensor.roof", uniqueID: "gattherd_attic_a_env-temperature", unit: unit, class: "temperature")
            content.add("sensor.other", uniqueID: "gattherd_attic_b_env-temperature", unit: "°C")
            content.entities["gattherd_attic_a_env-humidity"] = "sensor.without_statistics"
        }
    }

    @Test func `the hours of an entity are imported under its id`() async throws {
        let home = try home()
        let report = try await report(home)
        #expect(report.entities == ["sensor.roof"] && report.importedEntities == ["sensor.roof"])
        #expect(report.hours == 1 && report.problems.isEmpty)
        #expect(
            home.content.state.imports == [
                #"{"id":4,"type":"recorder/import_statistics","metadata":{"source":"recorder","#
                    + #""statistic_id":"sensor.roof","name":null,"unit_of_measurement":"°C","has_sum":false,"#
                    + #""has_mean":true},"stats":[{"start":"2026-11-21T03:00:00.000000Z","min":10.0,"mean":21.25,"#
                    + #""max":30.0}]}"#
            ]
        )
    }

    @Test(arguments: ["2025.11.0", "2026.1.0b3"])
    func `newer versions are told the kind of mean and the class of the unit`(version: String) async throws {
        let home = try home(version)
        _ = try await report(home)
        let text = try #require(home.content.state.imports.first)
        #expect(text.contains(#""has_sum":false,"mean_type":1,"unit_class":"temperature"}"#))
    }

    @Test func `values are converted into the unit of the statistics`() async throws {
        let home = try home(unit: "°F")
        _ = try await report(home)
        let text = try #require(home.content.state.imports.first)
        #expect(text.contains(#""unit_of_measurement":"°F""#))
        #expect(text.contains(#""min":50.0,"mean":70.25,"max":86.0"#))
    }

    @Test func `an entity with an unknown unit is a problem of its own`() async throws {
        let home = try home(unit: "hPa")
        let report = try await report(home)
        #expect(report.importedEntities.isEmpty)
        #expect(report.problems.map { $0.prefix(12) } == ["sensor.roof:"])
        #expect(home.content.state.imports.isEmpty)
    }

    @Test(arguments: ["home_assistant_error", "invalid_format"])
    func `an entity that is refused delays no other`(code: String) async throws {
        // The order of the two entities varies with the seed of dictionaries, so neither may end the import.
        let home = try home()
        home.content.update { content in
            content.add("sensor.twin", uniqueID: "gattherd_attic_a_twin-temperature", unit: "°C")
            content.refusedImport = .init("sensor.twin", code: code)
        }
        let report = try await report(home)
        #expect(report.entities == ["sensor.roof", "sensor.twin"])
        #expect(report.importedEntities == ["sensor.roof"] && report.hours == 1)
        #expect(report.problems.count == 1 && report.problems.first?.hasPrefix("sensor.twin: ") == true)
    }

    @Test func `an import of which every entity is refused is refused`() async throws {
        let error = try await failure { content in
            content.add("sensor.roof", uniqueID: "gattherd_attic_a_env-temperature", unit: "°C")
            content.refusedImport = .init("sensor.roof", code: "invalid_format")
        }
        #expect(error?.kind == .refusesAll)
        #expect(error?.description.contains("sensor.roof: ") == true)
    }

    @Test func `an import that fails for another reason ends`() async throws {
        let error = try await failure { content in
            content.add("sensor.roof", uniqueID: "gattherd_attic_a_env-temperature", unit: "°C")
            content.refusedImport = .init("sensor.roof", code: "unknown_error")
        }
        #expect(error?.kind == .unavailable)
    }

    @Test func `sums and circular means are no targets`() async throws {
        for (from, to) in [(#""has_sum":false"#, #""has_sum":true"#), (#""mean_type":1"#, #""mean_type":2"#)] {
            let home = try home()
            home.content.update { content in
                content.statistics = content.statistics.map { $0.replacing(from, with: to) }
            }
            #expect(try await report(home).entities.isEmpty)
        }
    }

    @Test func `a refused token, a refused request and another server are for people to correct`() async throws {
        #expect(try await failure(token: "wrong") { _ in }?.kind == .misconfigured)
        let refusal = #"{"id":1,"type":"result","success":false,"error":{"code":"unauthorized","message":"no"}}"#
        let refused = try await failure { $0.answers["get_config"] = [.text(refusal)] }
        #expect(refused?.kind == .misconfigured)
        #expect(refused?.description.contains("administrator") == true)
        #expect(try await failure { $0.answers["auth"] = [.text("[1]")] }?.kind == .misconfigured)
        #expect(try await failure { $0.answers["auth"] = [.bytes([0xFF, 0xFF])] }?.kind == .misconfigured)
    }

    @Test func `long texts of a server are cut, and an entity with an impossible id is none`() async throws {
        let long = String(repeating: "x", count: 1 << 20)
        let failed = #"{"id":1,"type":"result","success":false,"error":{"code":"timeout","message":"\#(long)"}}"#
        let error = try await failure { $0.answers["get_config"] = [.text(failed)] }
        #expect(try #require(error).description.utf8.count < 1000)
        let home = try FakeHomeAssistant { content in
            content.add("sensor.\(long)", uniqueID: "gattherd_attic_a_env-temperature", unit: "°C")
            content.add("sensor.twin", uniqueID: "gattherd_attic_a_twin-temperature", unit: long)
        }
        let report = try await report(home)
        #expect(report.entities == ["sensor.twin"])
        #expect(report.problems.count == 1)
        #expect(try #require(report.problems.first).utf8.count < 1000)
    }

    @Test func `a server that starts, fails or goes away is tried again`() async throws {
        #expect(try await failure { $0.state = "STARTING" }?.kind == .unavailable)
        #expect(try await failure { $0.answers["recorder/list_statistic_ids"] = [.close] }?.kind == .unavailable)
        let failed = #"{"id":1,"type":"result","success":false,"error":{"code":"timeout","message":"slow"}}"#
        #expect(try await failure { $0.answers["get_config"] = [.text(failed)] }?.kind == .unavailable)
        let port = try Broker.freePort()
        let server = HomeAssistantServer(url: "http://127.0.0.1:\(port)", host: "127.0.0.1", path: "", token: "t")
        let error = await NamedThread.result(name: "test") {
            do throws(HomeAssistantError) {
                _ = try HomeAssistantClient(server)
                return HomeAssistantError?.none
            } catch {
                return error
            }
        }
        #expect(error??.kind == .unavailable)
    }

    @Test func `an hour that is not over by the clock of Home Assistant is not imported`() async throws {
        for date in ["Sat, 21 Nov 2026 04:00:59 GMT", "Thu, 01 Jan 1970 00:00:01 GMT"] {
            let error = try await failure { $0.date = date }
            #expect(error?.kind == .unavailable)
            #expect(error?.description.contains("clock") == true)
        }
        for date in ["Sat, 21 Nov 2026 04:01:00 GMT", "Tue, 19 Jan 2999 00:00:00 GMT", "soon", ""] {
            let home = try home()
            home.content.update { $0.date = date }
            #expect(try await report(home).hours == 1)
        }
    }

    @Test func `wrong kinds of values in answers change nothing`() async throws {
        for result in ["null", "{}", #""x""#, "[1,null,{}]", #"[{"entity_id":1,"unique_id":[],"platform":"mqtt"}]"#] {
            let home = try home()
            let answer = #"{"id":3,"type":"result","success":true,"result":\#(result)}"#
            home.content.update { $0.answers["config/entity_registry/list"] = [.text(answer)] }
            #expect(try await report(home).entities.isEmpty)
        }
    }
}

@Suite struct StatisticsUnitTests {
    @Test(arguments: [
        ("°C", "°F", 100, 212), ("°F", "°C", -40, -40), ("K", "°C", 273.15, 0), ("hPa", "inHg", 1013.25, 29.921),
        ("hPa", "psi", 1013.25, 14.696), ("m/s", "mph", 10, 22.369), ("mm", "in", 25.4, 1), ("km", "mi", 1.609344, 1),
        ("kg", "lb", 1, 2.2046), ("mV", "V", 1500, 1.5), ("s", "h", 5400, 1.5), ("bpm", "bpm", 61.5, 61.5),
    ])
    func `a value keeps its meaning`(source: String, target: String, value: Double, expected: Double) throws {
        let converted = try #require(StatisticsUnit(from: source, to: target)).convert(value)
        #expect(abs(converted - expected) < 0.001)
    }

    @Test func `a conversion to the same unit is exact`() throws {
        #expect(try #require(StatisticsUnit(from: "°F", to: "°F")).convert(0.1) == 0.1)
        #expect(try #require(StatisticsUnit(from: nil, to: nil)).convert(0.1) == 0.1)
    }

    @Test func `the micro sign and the Greek letter are the same unit`() throws {
        #expect(try #require(StatisticsUnit(from: "\u{B5}g/m³", to: "\u{3BC}g/m³")).convert(12.5) == 12.5)
    }

    @Test func `units of other quantities and unknown units have no conversion`() {
        for (source, target) in [("°C", "hPa"), ("bpm", "1/min"), (nil, "%"), ("%", nil)] as [(String?, String?)] {
            #expect(StatisticsUnit(from: source, to: target) == nil)
        }
    }
}
