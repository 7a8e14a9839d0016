import GattherdDBus
import GattherdSync
import Glibc

/// A failure of the program, with a message and an exit code of sysexits.h.
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
        A simulated org.bluez: BLE peripherals without hardware.

        Usage: gattherd-sim run [--bus ADDRESS] [--truth FILE] SCENARIO
               gattherd-sim ctl [--bus ADDRESS] ORDER …

        run     Takes the name org.bluez on a bus and simulates the peripherals of SCENARIO (YAML)
                until SIGTERM or SIGINT. Prints the bus's address to standard output when ready.
                For a scenario of several gateways, prints a line for each: NAME ADDRESS.
        ctl     Changes a running simulation.

        Options
          --bus ADDRESS   private (run's default: a dbus-daemon of its own), system (ctl's default:
                          DBUS_SYSTEM_BUS_ADDRESS, if set), session, or a D-Bus address
          --truth FILE    log of the events at the peripherals, one JSON object per line
          --help          this text

        Orders
          status                                  the peripherals and their links
          drop PERIPHERAL                         end the link from the peripheral's side
          vanish PERIPHERAL                       put it out of range
          appear PERIPHERAL                       put it back in range
          keep-link PERIPHERAL                    keep its link over the next crash of bluetoothd
          silence PERIPHERAL [notifications|all|off]
                                                  stop its notifications; all: its responses too
          advertise PERIPHERAL on|off             switch its advertising
          slow PERIPHERAL SECONDS                 delay its responses; 0: as in the scenario
          refuse PERIPHERAL [TIMES]               end the next links right after they are made
          burst PERIPHERAL [NUMBER]               send this number of notifications at once
          set-clock PERIPHERAL SECONDS            set the clock of a recorder ahead of the right time
          reset-records PERIPHERAL                let a recorder lose its records and count from 0
          forget PERIPHERAL                       remove its keys of all bonds
          fail-next TARGET METHOD [ERROR [TIMES]] the next calls fail: ERROR is a D-Bus error
                                                  ("Failed: text"), an ATT code (0x0d) or no-reply
          power ADAPTER on|off
          hang [ADAPTER] on|off                   hang its controller
          unplug ADAPTER
          plug ADAPTER
          restart-daemon [DOWNTIME [graceful]]    crash bluetoothd, or end it gracefully, and start it
                                                  after DOWNTIME (2s)
          notify PERIPHERAL CHARACTERISTIC HEX    send one notification with these bytes
          rate PERIPHERAL NUMBER                  set the notifications per second
          change-services PERIPHERAL [UUID …]     move all handles and hide these services
          hide-services PERIPHERAL [UUID …]       hide these services without moving handles

        TARGET is a peripheral, or an adapter for the methods of adapters. Peripherals are named by name
        or address. The format of scenarios is described in Sources/Tools/GattherdSimulator/README.md.

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
        guard let command = words.first else { throw .usage("missing command") }
        if words.contains("--help") || words.contains("-h") || command == "help" {
            return write(help, to: STDOUT_FILENO)
        }
        let options = try Options(words.dropFirst())
        switch command {
        case "run": try await RunSimulator(options).run()
        case "ctl": try await ControlProgram(options).run()
        default: throw .usage("unknown command '\(command)'")
        }
    }
}

/// Writes text without buffering.
func write(_ text: String, to descriptor: Int32) {
    _ = writeAll(Array(text.utf8), to: descriptor)
}

/// The options and words after the command.
struct Options {
    private(set) var bus: String?
    private(set) var truth: String?
    private(set) var words: [String] = []

    init(_ arguments: some Sequence<String>) throws(ProgramFailure) {
        var rest = Array(arguments)[...]
        while let word = rest.popFirst() {
            switch word {
            case "--bus": bus = try Self.value(of: word, &rest)
            case "--truth": truth = try Self.value(of: word, &rest)
            case _ where word.hasPrefix("--"): throw .usage("unknown option '\(word)'")
            default: words.append(word)
            }
        }
    }

    private static func value(of option: String, _ rest: inout ArraySlice<String>) throws(ProgramFailure) -> String {
        guard let value = rest.popFirst() else { throw .usage("\(option) needs a value") }
        return value
    }

    /// The address of a `--bus` value; `nil` for a private bus.
    static func address(_ bus: String) -> DBusAddress? {
        switch bus {
        case "private": nil
        case "system": .system
        case "session": .session
        default: .address(bus)
        }
    }
}
