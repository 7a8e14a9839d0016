public import GattherdDBus
import GattherdSync
import TestKit

/// A client of org.bluez by D-Bus, independent of gattherd's own, which records the received messages.
public final class BlueZClient: Sendable {
    private let loop = EventLoop(name: "test client")
    private let connection: DBusConnection
    private let entries = Locked<[BusEvent]>([])
    private let departures = LatestValue(0)

    static let service = "org.bluez"
    private static let rules = [
        "type='signal',sender='org.bluez'",
        "type='signal',sender='org.freedesktop.DBus',member='NameOwnerChanged',arg0='org.bluez'",
    ]

    /// Connects to the bus and records all events from then on.
    public init(on bus: String) async throws {
        connection = try await DBusConnection.open(.address(bus), on: loop)
        await watch()
        for rule in Self.rules { try await connection.addMatch(rule) }
    }

    deinit {
        loop.execute { [connection] in connection.assumeIsolated { $0.close() } }
        loop.stop()
    }

    /// Leaves the bus.
    ///
    /// Acquired sockets stay open.
    public func leave() async {
        await connection.close()
    }

    // MARK: - Calls

    /// Calls a method of bluetoothd and records its end.
    @discardableResult
    public func call(
        _ path: String,
        _ interface: String,
        _ member: String,
        _ arguments: [DBusValue] = [],
        timeout: Duration = .seconds(90)
    ) async throws(DBusError) -> [DBusValue] {
        try await connection.call(
            Self.service,
            path,
            interface,
            member,
            arguments,
            timeout: timeout,
            onReply: { [entries] outcome in
                let error: String? = if case .failure(let error) = outcome { "\(error)" } else { nil }
                entries.withLock { $0.append(.reply(path, member, error: error)) }
            }
        )
    }

    /// The outcome of a call: `ok`, the name and text of its error, or `no reply`.
    public func outcome(
        _ path: String,
        _ interface: String,
        _ member: String,
        _ arguments: [DBusValue] = [],
        timeout: Duration = .seconds(90)
    ) async -> String {
        do throws(DBusError) {
            try await call(path, interface, member, arguments, timeout: timeout)
            return "ok"
        } catch {
            return error.name == DBusError.timeoutName ? "no reply" : "\(error)"
        }
    }

    /// Calls a method without waiting for its reply.
    public func post(_ path: String, _ interface: String, _ member: String) {
        loop.execute { [connection] in try? connection.post(Self.service, path, interface, member) }
    }

    /// Exports an object of this client, whose calls `handler` answers.
    public func export(_ path: String, handler: @escaping @Sendable (DBusMethodCall) -> Void) async {
        await withCheckedContinuation { done in
            loop.execute { [connection] in
                connection.export(path, handler: handler)
                done.resume()
            }
        }
    }

    // MARK: - Events

    /// The events since the start or the last ``removeEvents()``: signals and ends of calls, in order.
    public var events: [BusEvent] { entries.withLock { $0 } }

    /// Removes all recorded events.
    public func removeEvents() {
        entries.withLock { $0.removeAll() }
    }

    /// Waits until the recorded events satisfy `condition` and returns them.
    @discardableResult
    public func waitForEvents(_ condition: ([BusEvent]) -> Bool) async throws -> [BusEvent] {
        try await eventually { condition(self.events) }
        return events
    }

    /// Waits until bluetoothd has left the bus since the start, including removed events.
    public func waitForDeparture() async {
        for await count in departures.watch() where count > 0 { return }
    }

    private func watch() async {
        await withCheckedContinuation { done in
            loop.execute { [connection, entries, departures] in
                connection.onSignal { signal in
                    guard let event = BusEvent(signal) else { return }
                    if event == .daemon(isRunning: false) { departures.update { $0 += 1 } }
                    entries.withLock { $0.append(event) }
                }
                done.resume()
            }
        }
    }
}
