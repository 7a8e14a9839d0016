import GattherdSimulator

/// A gateway of a simulation: its folder and the peripherals of its configuration.
struct SimulatedGateway: Sendable {
    let name: String
    /// The daemon's name in messages.
    let title: String
    let folder: SimulationFolder
    let peripherals: [PeripheralSpec]

    /// The gateways of a scenario: one with all peripherals in `folder`, or several with folders inside and the
    /// peripherals that come into their reach.
    ///
    /// - Throws: ``CommandFailure`` if a folder cannot be made.
    static func all(of scenario: Scenario, in folder: SimulationFolder) throws(CommandFailure) -> [SimulatedGateway] {
        guard !scenario.gateways.isEmpty else {
            let peripherals = scenario.peripherals
            return [SimulatedGateway(name: "simulated", title: "the daemon", folder: folder, peripherals: peripherals)]
        }
        var gateways: [SimulatedGateway] = []
        for gateway in scenario.gateways {
            let name = gateway.name.lowercased()
            let gateway = SimulatedGateway(
                name: name,
                title: "the daemon of \(name)",
                folder: try folder.subfolder(name),
                peripherals: scenario.peripherals(inReachOf: gateway)
            )
            gateways.append(gateway)
        }
        return gateways
    }

    /// Returns the gateway's files for the simulator's line: `ADDRESS`, or `NAME ADDRESS`.
    func files(simulatorLine line: Substring, port: UInt16, httpPort: UInt16) -> SimulationFiles {
        let bus = line.split(separator: " ").last.map(String.init) ?? ""
        return SimulationFiles(folder: folder, gateway: name, bus: bus, port: port, httpPort: httpPort)
    }
}
