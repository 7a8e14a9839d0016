import GattherdModel
import Testing

@testable import GattherdSparkplug

/// The values that a primary host misses between its crash and the moment at which the broker notices it.
@Suite struct PrimaryHostTests {
    /// A bench with three values that the broker has confirmed, and a host that is online since the time 100.
    private static func confirmed() -> MachineBench {
        var bench = MachineBench(host: true)
        bench.hostIsOnline(true, at: 100)
        bench.connect(Devices.strap)
        for second in Int64(1)...3 {
            bench.commit(Devices.heartRate, .integer(second), .null, at: second)
            bench.answerPing()
            bench.wait(.seconds(1))
        }
        #expect(bench.machine.progress.backlog == 0)
        return bench
    }

    /// The historical heart rates in the published messages.
    private static func historical(_ bench: MachineBench) -> [SparkplugMetric.Value?] {
        bench.messages("DDATA").flatMap { $0.payload.metrics.filter { $0.isHistorical && !$0.isNull }.map(\.value) }
    }

    @Test func `a host gets the values again that the broker confirmed before it noticed the crash`() {
        var bench = Self.confirmed()
        bench.hostIsOnline(false, at: 100)
        bench.forgetMessages()
        bench.wait(.seconds(20))
        bench.hostIsOnline(true, at: 200)
        #expect(Self.historical(bench) == [.double(1), .double(2), .double(3)])
        let last = bench.messages("DDATA").last?.payload.metrics.first
        #expect(last?.value == .double(3) && last?.isHistorical == false)
    }

    @Test func `values are not repeated to a host that stayed online for a while after them`() {
        var bench = Self.confirmed()
        bench.wait(.seconds(165))
        #expect(bench.saved.last == 3)
        bench.hostIsOnline(false, at: 100)
        bench.forgetMessages()
        bench.wait(.seconds(20))
        bench.hostIsOnline(true, at: 200)
        #expect(bench.messages("DBIRTH").count == 1 && bench.messages("DDATA").isEmpty)
    }

    @Test func `a lost connection repeats no confirmed values, unless the host is offline after it`() {
        var bench = Self.confirmed()
        bench.lose()
        bench.forgetMessages()
        bench.wait(.seconds(20))
        bench.hostIsOnline(true, at: 100)
        #expect(bench.messages("DBIRTH").count == 1 && bench.messages("DDATA").isEmpty)
        bench.lose()
        bench.wait(.seconds(20))
        bench.hostIsOnline(false, at: 100)
        bench.hostIsOnline(true, at: 200)
        #expect(Self.historical(bench) == [.double(1), .double(2), .double(3)])
    }

    @Test func `values are repeated also if the host was offline while the broker was out of reach`() {
        var bench = Self.confirmed()
        bench.isBrokerDead = true
        bench.lose()
        bench.wait(.seconds(170))
        bench.isBrokerDead = false
        bench.wait(.seconds(30))
        bench.hostIsOnline(false, at: 100)
        bench.forgetMessages()
        bench.hostIsOnline(true, at: 200)
        #expect(Self.historical(bench) == [.double(1), .double(2), .double(3)])
    }

    @Test func `values are repeated to a host that returned before the gateway did`() {
        var bench = Self.confirmed()
        bench.lose()
        bench.wait(.seconds(20))
        bench.forgetMessages()
        bench.hostIsOnline(true, at: 200)
        #expect(Self.historical(bench) == [.double(1), .double(2), .double(3)])
    }

    @Test func `values are repeated to a host whose offline message is missing`() {
        var bench = Self.confirmed()
        bench.forgetMessages()
        bench.hostIsOnline(true, at: 200)
        #expect(bench.types == ["NDEATH"])
        bench.wait(.seconds(20))
        bench.hostIsOnline(true, at: 200)
        #expect(Self.historical(bench) == [.double(1), .double(2), .double(3)])
        bench.forgetMessages()
        bench.hostIsOnline(true, at: 200)
        #expect(bench.messages.isEmpty && bench.machine.state == .online)
    }

    @Test func `time in which the gateway does not know the host's state does not count`() {
        var bench = Self.confirmed()
        bench.wait(.seconds(60))
        bench.lose()
        bench.wait(.seconds(600))
        bench.hostIsOnline(true, at: 100)
        bench.wait(.seconds(30))
        #expect(bench.saved.isEmpty)
        bench.wait(.seconds(75))
        #expect(bench.saved.last == 3)
    }

    @Test func `a host that never stays online for long gets no value more than three times`() {
        let backlog = (1...1000).map { JournalReading.of(Devices.heartRate, [.integer($0), .null], seq: $0, at: $0) }
        var bench = MachineBench(host: true, backlog: backlog)
        for cycle in 1...10 {
            bench.hostIsOnline(true, at: cycle)
            for _ in 0..<6 {
                bench.answerPing()
                bench.wait(.seconds(10))
            }
            #expect(bench.machine.progress.backlog == 0)
            bench.hostIsOnline(false, at: cycle)
            bench.wait(.seconds(20))
        }
        #expect(Self.historical(bench).count == 3000)
        #expect(bench.saved.last == 1000)
    }

    @Test func `values that were not confirmed in three sessions of a host in a row are sent again`() {
        var trail = HostTrail(grace: .seconds(120))
        var starts: [Int64] = []
        for last in Int64(1)...4 {
            trail.confirm(last, at: .seconds(last))
            starts += [trail.rewind(), trail.rewind()]
        }
        #expect(starts == [0, 0, 0, 0, 1, 1, 2, 2])
    }

    @Test func `the saved cursor stays before the values that the host may have missed`() {
        var bench = Self.confirmed()
        #expect(bench.saved.isEmpty)
        bench.send(.stop(drain: .seconds(5)))
        #expect(bench.isFinished && bench.saved.isEmpty)
    }

    @Test func `a host that misses values of many readings costs a bounded memory`() {
        var trail = HostTrail(grace: .seconds(90))
        var largest = 0
        for seq in Int64(1)...100_000 {
            trail.confirm(seq, at: .milliseconds(10 * seq))
            largest = max(largest, trail.count)
        }
        #expect(largest <= 66)
        // 9000 values are confirmed in 90 s; one may count as confirmed up to three seconds later.
        #expect((90_700...91_000).contains(trail.start))
        trail.expire(at: .seconds(2000))
        let start = trail.rewind()
        #expect(start == 100_000 && trail.count == 0)
    }
}
