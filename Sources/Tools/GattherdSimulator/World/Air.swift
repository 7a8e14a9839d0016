import Glibc

/// The peripherals, the field of their signals and the time: the surroundings that all gateways share.
final class Air {
    let time = SimulationTime()
    let field: RadioField
    var peripherals: [SimulatedPeripheral]
    private var handlers: [(Int) -> Void] = []

    init(_ scenario: Scenario) {
        field = RadioField(scenario)
        var time = timespec()
        unsafe clock_gettime(CLOCK_REALTIME, &time)
        let start = Duration.seconds(Int64(time.tv_sec)) + .nanoseconds(Int64(time.tv_nsec))
        peripherals = scenario.peripherals.map { SimulatedPeripheral($0, start: start) }
    }

    /// Adds a handler of the number of each peripheral that starts to advertise.
    func onAdvertising(_ handler: @escaping (Int) -> Void) {
        handlers.append(handler)
    }

    /// Starts a peripheral's advertising: scanning adapters receive it and waiting attempts continue.
    func startAdvertising(_ index: Int) {
        stopAdvertising(index)
        guard peripherals[index].isAdvertising else { return }
        for handler in handlers { handler(index) }
    }

    /// Ends a peripheral's current period of advertising.
    func stopAdvertising(_ index: Int) {
        peripherals[index].airEpoch += 1
    }
}
