import BluetoothExamples
import Foundation
import GattherdBluetoothTesting

/// A state-driven view of Bluetooth in a terminal; nothing is stored.
///
///     swift run gattherd-demo --simulated
@main struct GattherdDemo {
    private static let clearScreen = "\u{1B}[2J\u{1B}[H"

    private static let scenario = """
        peripherals:
          - {name: strap, address: "C0:FF:EE:00:00:01", kind: heart-rate, advertise: {name: Strap}}
          - {name: cell, address: "C0:FF:EE:00:00:02", kind: battery, advertise: {name: Cell}}
        """

    private static let usage = "Usage: gattherd-demo [--simulated]; without it, the Bluetooth of this machine is used"

    static func main() async throws {
        let words = CommandLine.arguments.dropFirst()
        guard words.allSatisfy({ $0 == "--simulated" }) else {
            print(usage)
            exit(words.contains("--help") ? 0 : 64)
        }
        let (input, lines) = AsyncStream.makeStream(of: String.self)
        Thread.detachNewThread {
            while let line = readLine() { lines.yield(line) }
            lines.finish()
        }
        guard !words.isEmpty else {
            return await withCentral { central in await run(central, input) }
        }
        try await withSimulatedCentral(scenario) { central, _ in await run(central, input) }
    }

    private static func run(_ central: Central, _ input: AsyncStream<String>) async {
        await runDemo(central, input: input) { print(clearScreen + $0) }
    }
}
