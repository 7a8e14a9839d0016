import GattherdPostgres

extension CommandSpec {
    static let fleetRemove = CommandSpec(
        name: "fleet remove",
        summary: "end the access of a gateway to the central database, and keep its history",
        positionals: [fleetURL, PositionalSpec(name: "GATEWAY")],
        options: fleetOptions,
        details: """
            \(fleetURLHelp) For a gateway that is retired or stolen. Its role can no longer log in, its connections and
            leases end, and 'fleet status' does not list it any more. 'fleet add' admits it again.
            """,
        exits: fleetExits,
        examples: ["gattherd fleet remove postgresql://postgres@localhost/gattherd attic"],
        run: { (arguments) throws(CommandFailure) in try await FleetCommands(arguments).remove() }
    )
}

extension FleetCommands {
    func remove() async throws(CommandFailure) {
        let gateway = arguments.positional(1) ?? ""
        do throws(FleetDatabase.Failure) {
            let role = try await fleet.remove(gateway: gateway)
            Terminal.say("the gateway '\(gateway)' is removed; its role \(role) can no longer log in")
            Terminal.printError("gattherd: if lists gateways: still name it, change them and repeat this command")
        } catch {
            throw CommandFailure(.unavailable, "gattherd: \(error)")
        }
    }
}
