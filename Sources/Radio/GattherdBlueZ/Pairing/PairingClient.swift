import GattherdBluetooth
import GattherdDBus
import GattherdLog
import GattherdSync

/// Our pairing agent, and the pairings that we request; on the Bluetooth thread only.
final class PairingClient {
    private let client: BluetoothdClient
    private let objects: BlueZObjects
    private let links: Links
    private let address: DBusAddress
    private let loop: EventLoop
    private let operationLimit: Duration
    private let log: Log
    private var responder = PairingResponder()
    /// The unique name of the bluetoothd that knows our agent.
    private var agentOwner: String?
    private var isClosed = false

    init(
        _ client: BluetoothdClient,
        _ objects: BlueZObjects,
        _ links: Links,
        bus address: DBusAddress,
        on loop: EventLoop,
        operationLimit: Duration,
        log: Log
    ) {
        (self.client, self.objects, self.links) = (client, objects, links)
        (self.address, self.loop, self.operationLimit, self.log) = (address, loop, operationLimit, log)
    }

    /// The number of pairings that have not ended.
    var count: Int { responder.count }

    /// Starts again with another bluetoothd.
    func reset() {
        agentOwner = nil
    }

    /// The peripherals with their pairings, by address.
    func bonds() throws(BluetoothError) -> [Bond] {
        try objects.requireLoaded()
        let tree = objects.tree
        let ids = Set(tree.devices.all.values.compactMap { tree.id(of: $0) })
        return ids.compactMap(tree.bond)
            .sorted { ($0.peripheral.address, $0.peripheral.adapter) < ($1.peripheral.address, $1.peripheral.adapter) }
    }

    // MARK: - The agent

    func setDelegate(_ delegate: any PairingDelegate) {
        // Nothing would release it later.
        guard !isClosed else { return }
        responder.delegate = delegate
    }

    /// Registers our agent with bluetoothd unless it is registered already; returns false if bluetoothd is too busy.
    ///
    /// Returns true also if the task is cancelled: then nothing is registered.
    ///
    /// Our agent becomes the default agent. bluetoothd calls it when our own request makes a peripheral pair.
    /// Without an agent that knows our devices, bluetoothd never answers the request.
    func registerAgent() async -> Bool {
        guard responder.delegate != nil, let bus = client.bus, let owner = client.owner, agentOwner != owner else {
            return true
        }
        agentOwner = owner
        bus.exportAgent(for: owner) { [weak self] call in self?.respond(to: call) ?? .rejected("it is closed") }
        let path = DBusValue.objectPath(DBusConnection.agentPath)
        do throws(DBusError) {
            try await callManager("RegisterAgent", [path, .string("NoInputNoOutput")])
            try await callManager("RequestDefaultAgent", [path])
            return true
        } catch {
            if agentOwner == owner { agentOwner = nil }
            guard error.name != DBusError.cancelledName else { return true }
            log(
                .warning,
                "bluetoothd refused the pairing agent: characteristics that need encryption will not answer",
                [.init("error", error)]
            )
            return error.name != DBusError.timeoutName
        }
    }

    /// Calls the agent manager; being registered already is success.
    private func callManager(_ member: String, _ arguments: [DBusValue]) async throws(DBusError) {
        do throws(DBusError) {
            try await client.call("/org/bluez", BlueZ.agentManager, member, arguments)
        } catch  where error.name == "org.bluez.Error.AlreadyExists" {
            return
        }
    }

    /// Answers a request of bluetoothd's.
    private func respond(to call: AgentCall) -> PairingResponse {
        guard let id = objects.tree.devices[call.path].flatMap({ objects.tree.id(of: $0) }) else {
            return .rejected("the peripheral is unknown")
        }
        let response = responder.respond(to: call.request, from: id, isActive: links.isActive(id))
        log(
            .debug,
            "pairing request answered",
            [
                .init("peripheral", id.address), .init("request", call.request.rawValue),
                .init("response", "\(response)"),
            ]
        )
        return response
    }

    // MARK: - Pairings that we request

    /// Pairs with a peripheral; returns false if it paired without having requested its passkey.
    ///
    /// A peripheral that is paired already stays so, however it was paired. The timeout is the limit of all steps
    /// together.
    func pair(
        _ peripheral: PeripheralID,
        by method: PairingMethod,
        timeout: Duration
    ) async throws(BluetoothError) -> Bool {
        let path = try objects.devicePath(peripheral)
        // BlueZ 5.66 never answers a second `Pair`.
        guard try !objects.status(peripheral).isPaired else { return true }
        guard responder.begin(peripheral, by: method) else { throw BluetoothError(.busy, "a pairing is under way") }
        defer { responder.end(peripheral) }
        let deadline = SuspendingClock.now.advanced(by: timeout)
        let isNew: Bool
        do throws(DBusError) {
            isNew = try await request(peripheral, path, by: method, until: deadline)
        } catch {
            throw BluetoothError(error, missing: .unknownPeripheral)
        }
        _ = try? await objects.refresh(path, within: min(operationLimit, deadline.remaining))
        return !isNew || !responder.hasSkippedPasskey(peripheral)
    }

    /// Requests the pairing on a connection of its own, whose agent has the capability of the method.
    ///
    /// - Returns: False if the peripheral was paired before.
    private func request(
        _ peripheral: PeripheralID,
        _ path: String,
        by method: PairingMethod,
        until deadline: SuspendingClock.Instant
    ) async throws(DBusError) -> Bool {
        guard let owner = client.owner else { throw .noBluetoothd }
        let connection = try await openConnection(for: peripheral, until: deadline)
        connection.exportAgent(for: owner) { [weak self] call in
            self?.respond(to: call) ?? .rejected("it is closed")
        }
        let result = await Self.pair(on: connection, owner, path, method, operationLimit, deadline)
        // bluetoothd cancels a pairing whose client leaves.
        await connection.close()
        return try result.get()
    }

    /// Opens the connection of a pairing.
    ///
    /// The loop may stop when the central is closed, and no deadline passes on a stopped loop: ``close()`` has to end
    /// the attempt.
    private func openConnection(
        for peripheral: PeripheralID,
        until deadline: SuspendingClock.Instant
    ) async throws(DBusError) -> DBusConnection {
        guard !isClosed else { throw .leaving }
        let limit = min(operationLimit, deadline.remaining)
        let opening = PairingResponder.Opening { [address, loop] in
            do throws(DBusError) {
                return .success(try await DBusConnection.open(address, on: loop, timeout: limit))
            } catch {
                return .failure(error)
            }
        }
        responder.setOpening(opening, of: peripheral)
        let result = await withTaskCancellationHandler {
            await opening.value
        } onCancel: {
            opening.cancel()
        }
        guard !isClosed else {
            if case .success(let connection) = result { await connection.close() }
            throw .leaving
        }
        let connection = try result.get()
        responder.setConnection(connection, of: peripheral)
        return connection
    }

    /// Registers the agent of the method and requests the pairing.
    ///
    /// BlueZ 5.66 may report `Paired` as false after a pairing that another request caused.
    ///
    /// - Returns: False if the peripheral was paired before.
    private static func pair(
        on connection: DBusConnection,
        _ owner: String,
        _ path: String,
        _ method: PairingMethod,
        _ operationLimit: Duration,
        _ deadline: SuspendingClock.Instant
    ) async -> Result<Bool, DBusError> {
        let arguments = [DBusValue.objectPath(DBusConnection.agentPath), .string(method.capability)]
        let manager = BlueZ.agentManager
        do throws(DBusError) {
            try await connection.callOnLoop(
                owner,
                "/org/bluez",
                manager,
                "RegisterAgent",
                arguments,
                timeout: min(operationLimit, deadline.remaining)
            )
            try await connection.callOnLoop(owner, path, BlueZ.device, "Pair", timeout: deadline.remaining)
            return .success(true)
        } catch  where error.name == "org.bluez.Error.AlreadyExists" {
            return .success(false)
        } catch {
            return .failure(error)
        }
    }

    /// Cancels the pairings that we requested, and releases the delegate, which may own the central.
    func close() async {
        isClosed = true
        responder.delegate = nil
        responder.cancelOpenings()
        for connection in responder.connections { await connection.close() }
    }
}

extension SuspendingClock.Instant {
    /// The time until then; zero if it has passed.
    fileprivate var remaining: Duration { max(.zero, self - SuspendingClock.now) }
}
