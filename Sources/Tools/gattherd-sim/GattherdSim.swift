import Glibc

/// The end of the program with a message and a code of sysexits.h.
struct ProgramFailure: Error {
    let message: String
    let code: Int32

    static func usage(_ message: String) -> ProgramFailure {
        ProgramFailure(message: message + "\nTry gattherd-sim --help.", code: EX_USAGE)
    }
}

@main
enum GattherdSim {
    static let help = """
        A virtual org.bluez: BLE peripherals without hardware.

        Usage: gattherd-sim run [--bus ADDRESS] [--truth FILE] SCENARIO
               gattherd-sim ctl [--bus ADDRESS] ORDER …

        run     Takes the name org.bluez on a bus and simulates the peripherals of SCENARIO (YAML)
                until SIGTERM or SIGINT. The first line on standard output is the bus's address,
                written when it answers.
        ctl     Changes a running simulation.

        Options
          --bus ADDRESS   private (run's default: a dbus-daemon of its own), system (ctl's default:
                          DBUS_SYSTEM_BUS_ADDRESS, if set), session, or a D-Bus address
          --truth FILE    what the peripherals sent and saw, one JSON object to a line
          --help          this text

        Orders
          status                                  the peripherals and their links
          drop PERIPHERAL                         it ends its link, and advertises again
          vanish PERIPHERAL                       it is out of range …
          appear PERIPHERAL                       … and in range again
          keep-link PERIPHERAL                    its link outlives the next crash of bluetoothd
          silence PERIPHERAL [notifications|all|off]
                                                  it sends nothing; with all it answers nothing either
          advertise PERIPHERAL on|off             whether it advertises when it is not connected
          slow PERIPHERAL SECONDS                 how long it takes for each answer; 0: as in the scenario
          refuse PERIPHERAL [TIMES]               it ends the next links right after they were made
          burst PERIPHERAL [NUMBER]               so many notifications at once
          forget PERIPHERAL                       it loses the keys of its bonds
          fail-next TARGET METHOD [ERROR [TIMES]] the next calls fail: ERROR is a D-Bus error
                                                  ("Failed: text"), an ATT code (0x0d) or no-reply
          power ADAPTER on|off
          hang [ADAPTER] on|off                   its controller answers nothing, and tells nothing
          unplug ADAPTER
          plug ADAPTER
          restart-daemon [DOWNTIME [graceful]]    bluetoothd crashes, or ends in good order, and is
                                                  back after DOWNTIME (2s)
          notify PERIPHERAL CHARACTERISTIC HEX    one notification with these octets
          rate PERIPHERAL NUMBER                  notifications per second
          change-services PERIPHERAL [UUID …]     all handles move; the services named are gone
          hide-services PERIPHERAL [UUID …]       the services named are gone, no handle moves

        TARGET is a peripheral, or an adapter for StartDiscovery and its like. Peripherals go by name or
        address. The format of scenarios is described in Sources/Tools/GattherdSimulator/README.md.

        """

    static func main() async {
        do throws(ProgramFailure) {
            try await run(Array(CommandLine.arguments.dropFirst()))
        } catch {
            write("gattherd-sim: \(error.message)\n", to: STDERR_FILENO)
            exit(error.code)
        }
    }

    private static func run(_ words: [String]) async throws(ProgramFailure) {
        guard let command = words.first else { throw .usage("a command is missing") }
        if words.contains("--help") || words.contains("-h") || command == "help" {
            return write(help, to: STDOUT_FILENO)
        }
        let options = try Options(words.dropFirst())
        switch command {
        case "run": try await RunSimulator(options).run()
        case "ctl": try await ControlProgram(options).run()
        default: throw .usage("there is no command '\(command)'")
        }
    }
}

/// Writes text at once, past any buffer.
func write(_ text: String, to descriptor: Int32) {
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
        let count = unsafe rest.withUnsafeBytes { unsafe Glibc.write(descriptor, $0.baseAddress, $0.count) }
        guard count > 0 else { return }
        rest = rest.dropFirst(count)
    }
}
