import GattherdModel
import Testing

@testable import GattherdSparkplug

/// The readings of devices that are gone when these are published.
@Suite struct FormerDevicesTests {
    @Test func `waiting readings of a removed device are not those of another one with its name`() throws {
        var bench = MachineBench()
        bench.connect(Devices.strap)
        bench.isJournalSlow = true
        bench.commit(Devices.heartRate, .integer(60), .null)
        bench.send(.removed(device: "strap"))
        bench.connect(Devices.strap)
        bench.commit(Devices.heartRate, .integer(70), .null)
        bench.forgetMessages()
        bench.answerFetches()
        #expect(bench.types == ["DDEATH", "DBIRTH", "DDATA", "DDEATH", "DBIRTH", "DDATA"])
        let rates = bench.messages("DDATA").compactMap(\.payload.metrics.first)
        #expect(rates.map(\.value) == [.double(60), .double(70)])
        #expect(rates.map(\.isHistorical) == [true, false])
        let birth = try #require(bench.messages("DBIRTH").last)
        #expect(birth.metric("heart_rate/rate")?.isNull == true)
    }

    @Test(arguments: [false, true])
    func `repeated readings of a removed device are not those of another one with its name`(isForHost: Bool) {
        var bench = MachineBench(host: isForHost)
        if isForHost { bench.hostIsOnline(true, at: 100) }
        bench.connect(Devices.strap)
        bench.isJournalSlow = true
        bench.commit(Devices.heartRate, .integer(60), .null)
        bench.send(.removed(device: "strap"))
        bench.connect(Devices.strap)
        bench.commit(Devices.heartRate, .integer(70), .null)
        bench.answerFetches()
        if isForHost {
            Self.confirmAll(&bench)
            bench.commit(Devices.heartRate, .integer(71), .null)
            Self.confirmAll(&bench)
            bench.hostIsOnline(false, at: 100)
        } else {
            bench.lose()
        }
        bench.forgetMessages()
        bench.wait(.seconds(20))
        if isForHost { bench.hostIsOnline(true, at: 200) }
        #expect(bench.types.prefix(6) == ["NBIRTH", "DBIRTH", "DDEATH", "DBIRTH", "DDATA", "DDEATH"])
        let rates = bench.messages("DDATA").compactMap(\.payload.metrics.first)
        #expect(rates.prefix(2).map(\.value) == [.double(60), .double(70)])
        let births = bench.messages("DBIRTH").map { $0.metric("heart_rate/rate")?.value }
        #expect(births == [.double(isForHost ? 71 : 70), nil, .double(isForHost ? 71 : 70)])
    }

    /// Answers pings until the broker has confirmed everything.
    private static func confirmAll(_ bench: inout MachineBench) {
        while bench.pings > 0 {
            bench.answerPing()
            bench.wait(.seconds(1))
        }
        #expect(bench.machine.progress.backlog == 0)
    }

    @Test func `a record of removed devices ends when their readings are not sent again`() {
        var bench = MachineBench()
        bench.connect(Devices.strap)
        bench.isJournalSlow = true
        bench.commit(Devices.heartRate, .integer(60), .null)
        bench.send(.removed(device: "strap"))
        bench.answerFetches()
        #expect(bench.machine.node.removed.count == 1)
        Self.confirmAll(&bench)
        bench.connect(Devices.strap)
        bench.commit(Devices.heartRate, .integer(70), .null)
        #expect(bench.machine.node.removed.isEmpty)
    }

    @Test func `a backlog of many former devices costs a bounded memory`() {
        let names = (1...1500).map { "former-\($0)" }
        let backlog = names.enumerated().map { index, name in
            let metrics = [MetricDescriptor(name: "value")]
            let stream = StreamDefinition(device: name, profile: "former", stream: "former", metrics: metrics)
            return JournalReading.of(stream, [.integer(1)], seq: Int64(index + 1), at: 1)
        }
        var bench = MachineBench(backlog: backlog)
        bench.connect(Devices.strap)
        while bench.pings > 0 {
            bench.answerPing()
            bench.wait(.seconds(1))
        }
        #expect(bench.machine.progress.backlog == 0 && bench.messages("DDATA").count == 1500)
        #expect(names.count { bench.machine.node.contains($0) } <= 1000)
        #expect(bench.machine.node.contains("strap"))
    }
}
