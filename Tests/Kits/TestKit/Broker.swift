import FoundationEssentials
import GattherdProcess
import GattherdSync
import Glibc

/// A private mosquitto on a loopback port, which can be stopped, killed and suspended.
public final class Broker: Sendable {
    public let port: Int
    /// The port of the TLS listener, if there is one.
    public let securePort: Int
    private let folder: TemporaryFolder
    private let settings: String
    private let hasUsers: Bool
    private let areUsersHashed = Locked(false)
    private let daemon = Locked<ChildProcess?>(nil)

    /// The broker did not start, or no port was free.
    public struct NotListening: Error {
        public init() {}
    }

    /// Prepares a broker on a free port, which starts with ``start()``.
    ///
    /// - Parameters:
    ///   - users: Names and passwords. If empty, anonymous clients may connect.
    ///   - lines: More lines of `mosquitto.conf`.
    ///   - secure: Lines for a second listener with TLS.
    /// - Throws: ``NotListening`` without a free port.
    public init(
        users: [(name: String, password: String)] = [],
        settings lines: [String] = [],
        secure: [String] = []
    ) throws {
        folder = try TemporaryFolder()
        port = try Self.freePort()
        securePort = try Self.freePort()
        var lines = ["listener \(port) 127.0.0.1", "persistence false", "log_dest stderr", "user root"] + lines
        if users.isEmpty {
            lines.append("allow_anonymous true")
        } else {
            let text = users.map { "\($0.name):\($0.password)\n" }.joined()
            let file = try folder.write(text, to: "passwords")
            lines += ["allow_anonymous false", "password_file \(file)"]
        }
        if !secure.isEmpty { lines += ["listener \(securePort) 127.0.0.1"] + secure }
        settings = try folder.write(lines.joined(separator: "\n") + "\n", to: "mosquitto.conf")
        hasUsers = !users.isEmpty
    }

    deinit {
        daemon.withLock { $0?.signal(SIGKILL) }
    }

    /// Starts or restarts the broker and waits until it listens.
    public func start() async throws {
        try await hashPasswords()
        let (lines, writer) = try LineReader.pipe()
        let child = Result {
            try ChildProcess("mosquitto", ["-c", settings], output: .descriptor(writer), errors: .descriptor(writer))
        }
        close(writer)
        try daemon.withLock { $0 = try child.get() }
        for await line in lines where line.hasSuffix(" running") { return }
        throw NotListening()
    }

    /// Ends the broker with SIGTERM, which closes the connections of its clients.
    public func stop() async {
        await end(by: SIGTERM)
    }

    /// Kills the broker, as a crash would.
    public func kill() async {
        await end(by: SIGKILL)
    }

    /// Suspends the broker: connections stay and nothing is answered until ``thaw()``.
    public func freeze() {
        daemon.withLock { $0?.signal(SIGSTOP) }
    }

    /// Continues a suspended broker.
    public func thaw() {
        daemon.withLock { $0?.signal(SIGCONT) }
    }

    private func end(by signal: Int32) async {
        guard let child = daemon.withLock({ $0 }) else { return }
        child.signal(SIGCONT)
        child.signal(signal)
        _ = await child.wait()
    }

    /// Hashes the password file, since mosquitto accepts no plain passwords.
    private func hashPasswords() async throws {
        guard hasUsers, areUsersHashed.withLock({ !$0 }) else { return }
        areUsersHashed.withLock { $0 = true }
        let status = try await ChildProcess("mosquitto_passwd", ["-U", folder.file("passwords")]).wait()
        guard status == .exited(0) else { throw NotListening() }
    }
}

/// A message that a subscriber received.
public struct ReceivedMessage: Hashable, Sendable {
    public let topic: String
    public let payload: String
    public let isRetained: Bool
    /// The MQTT 5 content type; empty for none.
    public let contentType: String
    /// The MQTT 5 correlation data; empty for none.
    public let correlation: String
    /// The MQTT 5 message expiry in remaining seconds; empty for none.
    public let expiry: String
    /// The MQTT 5 user properties as `name:value`, separated by spaces; empty for none.
    public let user: String
}

/// A `mosquitto_sub` that keeps all messages and reconnects within a second after its broker has restarted.
public final class Subscriber: Sendable {
    private let broker: Broker
    private let child: ChildProcess
    private let received = Locked<[ReceivedMessage]>([])
    private let count = LatestValue(0)
    private let subscriptions = LatestValue(0)

    /// Subscribes with QoS 1 and waits for the broker's acknowledgement.
    public init(_ broker: Broker, to filter: String = "#", user: (name: String, password: String)? = nil) async throws {
        let (lines, writer) = try LineReader.pipe()
        // Without stdbuf, mosquitto_sub prints its acknowledged subscription only with the first message.
        var arguments = ["-oL", "mosquitto_sub", "-p", "\(broker.port)", "-V", "mqttv5", "-q", "1", "-d", "-t", filter]
        arguments += ["-F", "MESSAGE\t%t\t%r\t%C\t%D\t%E\t%P\t%p"]
        if let user { arguments += ["-u", user.name, "-P", user.password] }
        let child = Result { try ChildProcess("stdbuf", arguments, output: .descriptor(writer)) }
        close(writer)
        self.child = try child.get()
        self.broker = broker
        _ = NamedThread(name: "subscriber") { [weak self] in
            while let line = lines.next() { self?.take(line) }
        }
        await waitForSubscription(1)
    }

    deinit {
        child.signal(SIGKILL)
    }

    /// Ends the MQTT session and waits until the broker has noticed it.
    ///
    /// For a moment, mosquitto 2.0.11 acknowledges and drops messages for a session that has just ended.
    ///
    /// - Throws: An error when `mosquitto_pub` cannot be run.
    public func leave() async throws {
        child.signal(SIGTERM)
        _ = await child.wait()
        try await broker.publish("", to: "$test/left")
    }

    public var messages: [ReceivedMessage] { received.withLock { $0 } }

    /// Waits until the messages satisfy `condition` and returns them.
    @discardableResult
    public func messages(until condition: ([ReceivedMessage]) -> Bool) async -> [ReceivedMessage] {
        for await _ in count.watch() where condition(messages) { break }
        return messages
    }

    /// Waits for the acknowledgement of subscription `number`, counted from 1 over reconnections.
    public func waitForSubscription(_ number: Int) async {
        for await count in subscriptions.watch() where count >= number { return }
    }

    private func take(_ line: String) {
        let fields = line.split(separator: "\t", maxSplits: 7, omittingEmptySubsequences: false)
        guard fields.first == "MESSAGE", fields.count == 8 else {
            if line.hasPrefix("Subscribed") { subscriptions.update { $0 += 1 } }
            return
        }
        let message = ReceivedMessage(
            topic: String(fields[1]),
            payload: String(fields[7]),
            isRetained: fields[2] == "1",
            contentType: String(fields[3]),
            correlation: String(fields[4]),
            expiry: String(fields[5]),
            user: String(fields[6])
        )
        received.withLock { $0.append(message) }
        count.update { $0 += 1 }
    }
}

extension Broker {
    /// Publishes one message with QoS 1 by `mosquitto_pub` and waits for its acknowledgement.
    ///
    /// - Parameters:
    ///   - payload: The payload.
    ///   - topic: The topic.
    ///   - isRetained: True for a retained message.
    ///   - areLines: True to publish each line of the payload as a message.
    ///   - more: Additional arguments of `mosquitto_pub`.
    /// - Throws: An error when `mosquitto_pub` cannot be run.
    public func publish(
        _ payload: some Sequence<UInt8>,
        to topic: String,
        retained isRetained: Bool = false,
        lines areLines: Bool = false,
        _ more: String...
    ) async throws {
        let data = Data(payload)
        let file = folder.file("payload")
        try data.write(to: URL(filePath: file))
        let arguments = ["-p", "\(port)", "-V", "mqttv5", "-q", "1", "-t", topic] + more + (isRetained ? ["-r"] : [])
        if areLines {
            let command = "exec mosquitto_pub \"$@\" -l <\"$0\""
            _ = try await ChildProcess("sh", ["-c", command, file] + arguments, errors: .null).wait()
        } else {
            let source = data.isEmpty ? ["-n"] : ["-f", file]
            _ = try await ChildProcess("mosquitto_pub", arguments + source, errors: .null).wait()
        }
    }

    public func publish(
        _ text: String,
        to topic: String,
        retained isRetained: Bool = false
    ) async throws {
        try await publish(text.utf8, to: topic, retained: isRetained)
    }
}

/// The output lines of a child process, read by blocking or as a stream.
final class LineReader: Sendable, AsyncSequence {
    typealias Element = String

    private let descriptor: Int32
    private let buffer = Locked<[UInt8]>([])

    private init(_ descriptor: Int32) {
        self.descriptor = descriptor
    }

    deinit {
        close(descriptor)
    }

    /// Returns a reader and the descriptor for the child's output.
    ///
    /// The caller closes the descriptor.
    static func pipe() throws -> (LineReader, Int32) {
        var ends: [Int32] = [-1, -1]
        guard unsafe Glibc.pipe(&ends) == 0 else { throw Broker.NotListening() }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        return (LineReader(ends[0]), ends[1])
    }

    /// Waits for the next line, without its line break; `nil` at the end of the output.
    func next() -> String? {
        var chunk = [UInt8](repeating: 0, count: 16_384)
        while true {
            if let line = takeLine() { return line }
            let count = unsafe read(descriptor, &chunk, chunk.count)
            guard count > 0 else { return nil }
            buffer.withLock { [chunk] in $0 += chunk[..<count] }
        }
    }

    private func takeLine() -> String? {
        buffer.withLock { buffer in
            guard let end = buffer.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
            defer { buffer.removeFirst(end + 1) }
            return String(decoding: buffer[..<end], as: UTF8.self)
        }
    }

    /// The lines as a stream.
    ///
    /// The output is read to its end, so that the child never blocks.
    func makeAsyncIterator() -> AsyncStream<String>.Iterator {
        let (lines, line) = AsyncStream.makeStream(of: String.self, bufferingPolicy: .bufferingNewest(1000))
        _ = NamedThread(name: "lines") {
            while let text = self.next() { line.yield(text) }
            line.finish()
        }
        return lines.makeAsyncIterator()
    }
}
