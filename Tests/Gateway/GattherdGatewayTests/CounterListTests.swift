import GattherdLog
import GattherdModel
import Testing

@testable import GattherdDaemon
@testable import GattherdDelivery
@testable import GattherdHTTP
@testable import GattherdSparkplug

/// The lists from which the metrics are made.
@Suite struct CounterListTests {
    /// The types with counters, and their lists.
    private static var lists: [(counters: Any, all: [Counter])] {
        let (recovery, delivery) = (RecoveryCounters(), DeliveryCounters())
        let (http, sparkplug) = (HTTPCounters(), SparkplugCounters())
        let recorder = EventRecorder(now: { Timestamp(microseconds: 0) })
        return [
            (recovery, recovery.all), (delivery, delivery.all), (http, http.all), (sparkplug, sparkplug.all),
            (recorder, recorder.counters),
        ]
    }

    private static func declared(in counters: Any) -> Set<String> {
        Set(Mirror(reflecting: counters).children.compactMap { ($0.value as? Counter)?.name })
    }

    @Test func `each declared counter is listed once`() {
        for (counters, all) in Self.lists {
            let declared = Self.declared(in: counters)
            #expect(declared.count >= 2)
            #expect(declared == Set(all.map(\.name)))
            #expect(all.count == declared.count)
        }
    }

    @Test func `each counter has a Prometheus name and an explanation`() {
        for counter in Self.lists.flatMap(\.all) {
            #expect(counter.name.wholeMatch(of: /[a-z_]+_total/) != nil, "\(counter.name)")
            #expect(!counter.help.isEmpty && !counter.help.hasSuffix("."), "\(counter.name)")
        }
    }
}
