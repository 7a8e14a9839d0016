import GattherdConfig
import GattherdDaemon
import GattherdGateway

extension CommandSpec {
    static let connect = CommandSpec(
        name: "connect",
        summary: "connect a device that was disconnected by hand",
        positionals: [PositionalSpec(name: "DEVICE")],
        options: [ConfigurationFile.option],
        details: """
            One that waits for its next attempt is tried at once. Ends as soon as the daemon knows; gattherd status
            shows what comes of it.
            """,
        exits: [.data: "there is no such device", .unavailable: "no daemon runs with this configuration"],
        examples: ["gattherd connect strap"],
        run: { (arguments) throws(CommandFailure) in
            try DaemonClient(arguments).order(.connect(device: arguments.positional(0) ?? ""))
        }
    )

    static let disconnect = CommandSpec(
        name: "disconnect",
        summary: "disconnect a device; it stays so until it is connected by hand, also over a restart",
        positionals: [PositionalSpec(name: "DEVICE")],
        options: [ConfigurationFile.option],
        details: "Its state is then 'held'. Ends as soon as the daemon knows.",
        exits: [.data: "there is no such device", .unavailable: "no daemon runs with this configuration"],
        examples: ["gattherd disconnect strap"],
        run: { (arguments) throws(CommandFailure) in
            try DaemonClient(arguments).order(.disconnect(device: arguments.positional(0) ?? ""))
        }
    )

    static let reload = CommandSpec(
        name: "reload",
        summary: "make the daemon read its configuration and profiles again",
        options: [ConfigurationFile.option],
        details: """
            Devices, profiles, how readings are published and the log's level change at once; links that this does not
            concern stay. Other changes wait for a restart, and are named. A wrong configuration changes nothing. Does
            the same as systemctl reload gattherd, which says nothing.
            """,
        exits: [
            .configuration: "the configuration is wrong; the one from before goes on",
            .unavailable: "no daemon runs with this configuration",
        ],
        run: { (arguments) throws(CommandFailure) in try DaemonClient(arguments).reload() }
    )

    static let set = CommandSpec(
        name: "set",
        summary: "set a control of a device",
        positionals: [
            PositionalSpec(name: "DEVICE"), PositionalSpec(name: "CONTROL"),
            PositionalSpec(name: "VALUE", isOptional: true),
        ],
        options: [ConfigurationFile.option],
        details: """
            VALUE is a number, true or false, or text, as the control wants it; a control that only does something takes
            none. Ends when the device has taken it. gattherd profile show PROFILE says which controls there are.
            """,
        exits: [
            .data: "no such device or control, not in its range, or the device did not take it",
            .unavailable: "no daemon runs with this configuration",
        ],
        examples: ["gattherd set dial number 128", "gattherd set strap reset_energy_expended"],
        run: { (arguments) throws(CommandFailure) in
            let (device, control) = (arguments.positional(0) ?? "", arguments.positional(1) ?? "")
            let call = ControlCall.set(device: device, control: control, value: arguments.positional(2) ?? "")
            try DaemonClient(arguments).order(call)
        }
    )
}
