/// Reads the section `fleet`, and checks what depends on it.
struct FleetReader {
    /// The key of the section that names the database of the leases.
    private static let database = "postgres"

    /// Reads the section after all others.
    func read(_ top: SectionReader, into configuration: inout Configuration) {
        var settings = FleetSettings()
        var leases: Located<Bool>?
        top.section("fleet") { section in
            leases = section.value("leases", .boolean)
            section.read("publish", .choice("a publisher"), into: &settings.publisher)
        }
        settings.hasLeases = leases?.value ?? false
        configuration.fleet = settings
        if settings.hasLeases { checkDatabase(configuration, leases?.place, top) }
        if !settings.hasLeases { checkDevices(configuration, top) }
    }

    private func checkDatabase(_ configuration: Configuration, _ place: ConfigPlace?, _ top: SectionReader) {
        guard let place, !configuration.outputs.contains(where: { $0.section == Self.database }) else { return }
        let reason = "the leases are in the central database; add the section '\(Self.database)'"
        top.report(.conflict(reason), at: place)
    }

    /// Reports devices that name gateways which nothing would make agree.
    private func checkDevices(_ configuration: Configuration, _ top: SectionReader) {
        for place in configuration.devices.compactMap({ $0.gateways?.first?.place }) {
            top.report(.conflict("'gateways' is of use with leases only; write fleet: {leases: true}"), at: place)
        }
    }
}
