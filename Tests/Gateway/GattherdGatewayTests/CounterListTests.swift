import GattherdLog
import Testing

@testable import GattherdDaemon
@testable import GattherdDelivery

/// The lists from which the metrics are made.
@Suite struct CounterListTests {
    private static func declared(in counters: Any) -> Set<String> {
        Set(Mirror(reflecting: counters).children.compactMap { ($0.value as? Counter)?.name })
    }

    @Test func `each declared counter is listed once`() {
        let (recovery, delivery) = (RecoveryCounters(), DeliveryCounters())
        for (counters, all) in [(recovery as Any, recovery.all), (delivery, delivery.all)] {
            let declared = Self.declared(in: counters)
            #expect(declared.count >= 6)
            #expect(declared == Set(all.map(\.name)))
            #expect(all.count == declared.count)
        }
    }

    @Test func `each counter has a Prometheus name and an explanation`() {
        for counter in RecoveryCounters().all + DeliveryCounters().all {
            #expect(counter.name.wholeMatch(of: /[a-z_]+_total/) != nil, "\(counter.name)")
            #expect(!counter.help.isEmpty && !counter.help.hasSuffix("."), "\(counter.name)")
        }
    }
}
