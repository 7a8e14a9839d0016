/// The peripherals, the field of their signals and the time: the surroundings that all gateways share.
final class Air {
    let time = SimulationTime()
    let field: RadioField
    var peripherals: [SimulatedPeripheral]
    private var receivers: [(Int) -> Void] = []

    init(_ scenario: Scenario) {
        field = RadioField(scenario)
        peripherals = scenario.peripherals.map(SimulatedPeripheral.init)
    }

    /// Adds a receiver of the number of each peripheral that starts to advertise.
    func onAdvertising(_ receiver: @escaping (Int) -> Void) {
        receivers.append(receiver)
    }

    /// Starts a peripheral's advertising: scanning adapters receive it and waiting attempts continue.
    func startAdvertising(_ index: Int) {
        stopAdvertising(index)
        guard peripherals[index].isAdvertising else { return }
        for receiver in receivers { receiver(index) }
    }

    /// Ends a peripheral's current period of advertising.
    func stopAdvertising(_ index: Int) {
        peripherals[index].airEpoch += 1
    }
}
