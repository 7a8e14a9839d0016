import GattherdConfig
import GattherdDaemon
import GattherdGateway

extension CommandSpec {
    static let connect = CommandSpec(
        name: "connect",
        summary: "connect a device that was disconnected by hand",
        positionals: [PositionalSpec(name: "DEVICE|ADDRESS")],
        options: [ConfigurationFile.option],
        details: """
            A device that waits for its next attempt is tried at once. The command does not wait for the link; gattherd
            status shows the result.
            """,
        exits: [.data: "there is no such device", .unavailable: "no daemon runs with this configuration"],
        examples: ["gattherd connect strap", "gattherd connect C0:FF:EE:00:00:01"],
        run: { (arguments) throws(CommandFailure) in
            try DaemonClient(arguments).order(.connect(device: arguments.positional(0) ?? ""))
        }
    )

    static let disconnect = CommandSpec(
        name: "disconnect",
        summary: "disconnect a device until it is connected by hand, also after a restart",
        positionals: [PositionalSpec(name: "DEVICE|ADDRESS")],
        options: [ConfigurationFile.option],
        details: "Its state is then 'held'. The command does not wait for the end of the link.",
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
            Devices, profiles, publishing rules and the log level change at once; unaffected links stay. Other changes
            need a restart and are named. An invalid configuration changes nothing. systemctl reload gattherd does the
            same without output.
            """,
        exits: [
            .configuration: "the configuration is wrong; the last valid one stays in use",
            .temporary: "a file system or a native profile hangs, and the files take effect when they are read; or the "
                + "system refuses a thread",
            .unavailable: "no daemon runs with this configuration",
        ],
        run: { (arguments) throws(CommandFailure) in try DaemonClient(arguments).reload() }
    )

    static let set = CommandSpec(
        name: "set",
        summary: "set a control of a device",
        positionals: [
            PositionalSpec(name: "DEVICE|ADDRESS"), PositionalSpec(name: "CONTROL"),
            PositionalSpec(name: "VALUE", isOptional: true),
        ],
        options: [ConfigurationFile.option],
        details: """
            VALUE is a number, true, false or text, depending on the control; an action needs no value. The command ends
            when the device has accepted the value. gattherd profile show PROFILE lists the controls.
            """,
        exits: [
            .data: "no such device or control, not in its range, or the device refused it",
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
