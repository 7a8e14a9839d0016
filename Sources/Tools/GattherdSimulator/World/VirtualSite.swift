import GattherdDBus
import GattherdGATT

/// The gateways of a scenario, each with a bluetoothd of its own, in one air: a state machine without I/O.
///
/// Handles events with their time and returns effects. Never reads a clock. Times are relative to the start. Confined
/// to one thread.
final class VirtualSite {
    /// An effect and the number of its gateway.
    struct Output: Hashable, Sendable {
        let gateway: Int
        let effect: Effect
    }

    let gateways: [VirtualBlueZ]
    private let air: Air
    /// The collected effects, except for the pending ones of the gateway that ran last.
    private var outputs: [Output] = []
    private var lastGateway = 0

    init(_ scenario: Scenario) {
        let air = Air(scenario)
        self.air = air
        gateways = scenario.allGateways.indices.map { VirtualBlueZ(scenario, in: air, gateway: $0) }
    }

    /// The time of the next call of ``advance(to:)``.
    var nextDeadline: Duration? { air.time.nextDeadline }

    /// Applies one event of a gateway and returns the effects in order.
    func handle(_ event: VirtualBlueZ.Event, of gateway: Int, at now: Duration) -> [Output] {
        runTimers(until: now)
        let gateway = target(of: event, from: gateway)
        select(gateway)
        gateways[gateway].apply(event)
        return drainOutputs()
    }

    /// Runs the timers that are due and returns their effects.
    func advance(to now: Duration) -> [Output] {
        runTimers(until: now)
        return drainOutputs()
    }

    private func runTimers(until end: Duration) {
        while let (entry, due) = air.time.advanceToTimer(until: end) {
            select(entry.gateway)
            gateways[entry.gateway].run(entry.timer, lag: end - due)
        }
        air.time.advance(to: end)
    }

    /// The gateway that applies an event: orders for a connected peripheral concern the gateway of its link.
    private func target(of event: VirtualBlueZ.Event, from gateway: Int) -> Int {
        guard case .control(let command) = event, let peripheral = command.peripheral else { return gateway }
        return air.peripherals[peripheral].link.flatMap(self.gateway) ?? gateway
    }

    private func gateway(of key: DeviceKey) -> Int? {
        gateways.firstIndex { $0.world.adapters.indices.contains(key.adapter) }
    }

    /// Collects the effects of the gateway that ran before, so that the order is kept.
    private func select(_ gateway: Int) {
        if gateway != lastGateway { collect() }
        lastGateway = gateway
    }

    private func collect() {
        let effects = gateways[lastGateway].world.effects.dequeueAll()
        outputs += effects.map { Output(gateway: lastGateway, effect: $0) }
    }

    private func drainOutputs() -> [Output] {
        collect()
        defer { outputs.removeAll() }
        return outputs
    }
}

extension VirtualSite {
    /// The reply to `Status`: a dictionary for each peripheral.
    var status: DBusValue {
        .array(element: "a{sv}", air.peripherals.map { .properties(status(of: $0)) })
    }

    private func status(of peripheral: SimulatedPeripheral) -> [Property] {
        let world = peripheral.link.flatMap(gateway).map { gateways[$0].world }
        let device = peripheral.link.flatMap { world?.devices[$0] }
        return [
            Property("name", .string(peripheral.spec.name)),
            Property("address", .string(peripheral.spec.address.description)),
            Property("present", .boolean(peripheral.isPresent)),
            Property("adapter", .string(peripheral.link.flatMap { world?.adapters[$0.adapter].label } ?? "")),
            Property("connected", .boolean(device != nil)),
            Property("resolved", .boolean(device?.isResolved ?? false)),
            Property("silence", .string(peripheral.silence.rawValue)),
            Property("subscriptions", .uint32(UInt32(peripheral.characteristics.count { $0.isSubscribed }))),
            Property("notifications", .uint64(peripheral.characteristics.reduce(0) { $0 + $1.sent })),
        ]
    }
}
