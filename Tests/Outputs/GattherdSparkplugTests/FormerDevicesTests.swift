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
}
