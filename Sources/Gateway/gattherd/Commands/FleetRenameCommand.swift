import GattherdModel
import GattherdPostgres

extension CommandSpec {
    static let fleetRename = CommandSpec(
        name: "fleet rename",
        summary: "give a gateway of the central database another name",
        positionals: [fleetURL, PositionalSpec(name: "OLD"), PositionalSpec(name: "NEW")],
        options: fleetOptions,
        details: """
            \(fleetURLHelp) The history, the leases and the role get the new name; the password stays. Change the name in
            the gateway's configuration, too, and restart it. Until then it cannot deliver, and loses nothing.
            """,
        exits: fleetExits,
        examples: ["gattherd fleet rename postgresql://postgres@localhost/gattherd attic loft"],
        run: { (arguments) throws(CommandFailure) in try await FleetCommands(arguments).rename() }
    )
}

extension FleetCommands {
    func rename() async throws(CommandFailure) {
        let (old, new) = (arguments.positional(1) ?? "", arguments.positional(2) ?? "")
        guard Slug.isValid(new) else { throw arguments.misuse("NEW has 1 to 64 of a-z, 0-9, '_' and '-'") }
        do throws(FleetDatabase.Failure) {
            let role = try await fleet.rename(gateway: old, to: new)
            Terminal.say("the gateway '\(old)' is '\(new)' now, with the role \(role)")
            Terminal.printError("gattherd: write gateway: \(new) into its configuration, and restart it")
            Terminal.printError("gattherd: also replace \(old) by \(new) in the lists gateways: of all gateways")
        } catch {
            throw CommandFailure(.unavailable, "gattherd: \(error)")
        }
    }
}
