import GattherdDaemon

extension CommandSpec {
    static let connect = CommandSpec(
        name: "connect",
        summary: "connect a device that was disconnected by hand",
        positionals: [PositionalSpec(name: "DEVICE")],
        options: [ConfigurationFile.option],
        run: { (arguments) throws(Failure) in
            try DaemonTalk(arguments).order(.connect(device: arguments.positional(0) ?? ""))
        }
    )

    static let disconnect = CommandSpec(
        name: "disconnect",
        summary: "disconnect a device; it stays so until it is connected by hand, also over a restart",
        positionals: [PositionalSpec(name: "DEVICE")],
        options: [ConfigurationFile.option],
        run: { (arguments) throws(Failure) in
            try DaemonTalk(arguments).order(.disconnect(device: arguments.positional(0) ?? ""))
        }
    )

    static let set = CommandSpec(
        name: "set",
        summary: "set a control of a device",
        positionals: [
            PositionalSpec(name: "DEVICE"), PositionalSpec(name: "CONTROL"),
            PositionalSpec(name: "VALUE", isOptional: true),
        ],
        options: [ConfigurationFile.option],
        examples: ["gattherd set dial number 128", "gattherd set strap reset_energy_expended"],
        run: { (arguments) throws(Failure) in
            let (device, control) = (arguments.positional(0) ?? "", arguments.positional(1) ?? "")
            let call = ControlCall.set(device: device, control: control, value: arguments.positional(2) ?? "")
            try DaemonTalk(arguments).order(call)
        }
    )
}

/// A talk with the daemon that runs with a configuration.
struct DaemonTalk {
    let path: String

    init(_ arguments: Arguments) throws(Failure) {
        path = try ConfigurationFile(arguments).load().controlSocketPath
    }

    /// Asks, and gives the answer unless it is a refusal.
    func ask(_ call: ControlCall) throws(Failure) -> ControlReply {
        let reply: ControlReply
        do throws(ControlSocketError) {
            reply = try ControlClient.ask(call, at: path)
        } catch {
            throw Failure(.unavailable, "gattherd: \(error.description)")
        }
        guard case .refused(let reason) = reply else { return reply }
        throw Failure(.data, "gattherd: \(reason)")
    }

    /// Asks for something to be done, and says what came of it.
    func order(_ call: ControlCall) throws(Failure) {
        if case .done(let words) = try ask(call) { Console.say(words) }
    }
}
