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
