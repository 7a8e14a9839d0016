import Foundation
import GattherdProcess
import TestKit
import Testing

/// The stop of the daemon by signals.
@Suite(.timeLimit(.minutes(1))) struct StopTests {
    private func daemon(in folder: TemporaryFolder, _ broker: Broker) async throws -> (ChildProcess, OutputFile) {
        let text = """
            gateway: lab
            bluetooth: {bus: "unix:path=\(folder.file("none"))"}
            history: {path: \(folder.file("history.db"))}
            mqtt: {url: "mqtt://127.0.0.1:\(broker.port)"}
            log: {format: json}
            """
        try text.write(toFile: folder.file("gattherd.yaml"), atomically: false, encoding: .utf8)
        let log = try OutputFile(folder.file("log"))
        let arguments = ["run", "--config", folder.file("gattherd.yaml")]
        let daemon = try ChildProcess(Programs.path("gattherd"), arguments, errors: .descriptor(log.descriptor))
        let subscriber = try await Subscriber(broker, to: "gattherd/lab/bridge/state")
        _ = await subscriber.messages { $0.contains { $0.payload == "online" } }
        return (daemon, log)
    }

    /// Starts a daemon whose broker stopped answering, then sends a signal: the final delivery takes its time.
    private func stuckDaemon(in folder: TemporaryFolder, _ broker: Broker) async throws -> (ChildProcess, OutputFile) {
        let (daemon, log) = try await daemon(in: folder, broker)
        broker.freeze()
        daemon.signal(SIGTERM)
        try await eventually { log.text.contains(#""message":"stopping""#) }
        return (daemon, log)
    }

    @Test(arguments: [SIGTERM, SIGINT])
    func `a second signal does not wait for the broker`(signal: Int32) async throws {
        let folder = try TemporaryFolder()
        let broker = try Broker()
        try await broker.start()
        let (daemon, log) = try await stuckDaemon(in: folder, broker)
        daemon.signal(signal)
        #expect(await daemon.wait() == .exited(128 + signal))
        #expect(!log.text.contains(#""message":"stopped""#))
        broker.thaw()
    }

    @Test func `one signal waits for the broker for a bounded time`() async throws {
        let folder = try TemporaryFolder()
        let broker = try Broker()
        try await broker.start()
        let (daemon, log) = try await stuckDaemon(in: folder, broker)
        #expect(await daemon.wait() == .exited(0))
        #expect(log.text.contains(#""message":"stopped""#))
        broker.thaw()
    }
}
