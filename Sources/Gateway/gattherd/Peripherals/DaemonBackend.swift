import GattherdBluetooth
import GattherdDaemon
import GattherdGATT
import GattherdModel
import GattherdSync

/// A Bluetooth backend for one device of the daemon.
///
/// Every GATT operation runs in the daemon, over the daemon's link.
final class DaemonBackend: ClientBackend {
    private struct Shared {
        var isConnected = true
        var watches: [SubscriptionToken: Task<Void, Never>] = [:]
    }

    let events: AsyncStream<CentralEvent>
    private let post: AsyncStream<CentralEvent>.Continuation
    private let path: String
    private let table: GATTTableReply
    private let peripheral: PeripheralID
    private let shared = Locked(Shared())

    /// Requests the device's GATT table from the daemon, which ends a back-off of the device first.
    ///
    /// - Parameters:
    ///   - address: The device's address.
    ///   - path: The daemon's control socket.
    /// - Returns: The backend; `nil` if no daemon answers, or if the daemon neither has the device nor connects it.
    /// - Throws: ``CommandFailure`` if the daemon has the device and cannot reach it.
    static func open(_ address: BluetoothAddress, at path: String) async throws(CommandFailure) -> DaemonBackend? {
        let reply: ControlReply
        do throws(ControlSocketError) {
            reply = try await ControlClient.reply(to: .table(device: address.description), at: path)
        } catch {
            if !error.isNobodyThere {
                Terminal.printError("gattherd: \(error.description); the device is connected without the daemon")
            }
            return nil
        }
        switch reply {
        case .table(let table): return table.peripheral.map { DaemonBackend(table, $0, path) }
        case .notServed: return nil
        case .refused(let reason): throw CommandFailure(.unavailable, "gattherd: \(Terminal.harmless(reason))")
        case .failed(let failure):
            throw CommandFailure(.unavailable, "gattherd: \(Terminal.harmless(failure.error.detail))")
        default: throw CommandFailure(.software, "gattherd: \(misunderstood)")
        }
    }

    private static let misunderstood = "the daemon's answer is not understood; is it another version?"

    private init(_ table: GATTTableReply, _ peripheral: PeripheralID, _ path: String) {
        (self.table, self.peripheral, self.path) = (table, peripheral, path)
        (events, post) = AsyncStream.makeStream(of: CentralEvent.self)
    }

    /// The link as the daemon described it.
    private var status: PeripheralStatus {
        var status = PeripheralStatus(id: peripheral)
        status.name = table.name
        status.isConnected = shared.withLock(\.isConnected)
        status.isServicesResolved = status.isConnected
        status.link = 1
        return status
    }

    // MARK: - Life

    func run() async {
        post.yield(.available)
        let adapter = peripheral.adapter
        post.yield(
            .adapterChanged(.init(address: adapter, name: "\(adapter)", isPowered: true, isDiscovering: false))
        )
        post.yield(.peripheralChanged(status))
    }

    func close() async {
        let watches = shared.withLock { shared in
            defer { shared.watches = [:] }
            return shared.watches.values
        }
        for watch in watches { watch.cancel() }
        post.finish()
    }

    func reconnectToBus() async {}
    func catchUp(within limit: Duration) async {}
    func roundTrip() async {}
    func watch(_ advertisements: AdvertisementWatch) async {}

    // MARK: - The link

    func status(of peripheral: PeripheralID) async -> PeripheralStatus? {
        peripheral == self.peripheral ? status : nil
    }

    func connect(_ peripheral: PeripheralID, timeout: Duration) async throws(BluetoothError) {
        guard peripheral == self.peripheral, shared.withLock(\.isConnected) else {
            throw BluetoothError(.notConnected, "\(peripheral.address) was disconnected")
        }
    }

    /// Does nothing: the link belongs to the daemon.
    func disconnect(_ peripheral: PeripheralID) async throws(BluetoothError) {}

    private func linkEnded() {
        shared.withLock { $0.isConnected = false }
        post.yield(.disconnected(peripheral))
        post.yield(.peripheralChanged(status))
        post.yield(.linkEnded(peripheral, .remote))
    }

    // MARK: - GATT

    func services(of peripheral: PeripheralID, timeout: Duration) async throws(BluetoothError) -> [RemoteService] {
        table.remoteServices(of: peripheral)
    }

    func characteristics(
        of peripheral: PeripheralID,
        timeout: Duration
    ) async throws(BluetoothError) -> [RemoteCharacteristic] {
        table.remoteServices(of: peripheral).flatMap(\.characteristics)
    }

    func read(_ characteristic: RemoteCharacteristic) async throws(BluetoothError) -> [UInt8] {
        try await read(characteristic.handle)
    }

    func read(_ descriptor: RemoteDescriptor) async throws(BluetoothError) -> [UInt8] {
        try await read(descriptor.handle)
    }

    private func read(_ handle: String) async throws(BluetoothError) -> [UInt8] {
        let reply = try await ask(.read(device: table.address, attribute: handle))
        guard case .value(let value) = reply, let bytes = value.octets else { throw Self.unexpected(reply) }
        return bytes
    }

    func write(
        _ bytes: [UInt8],
        to characteristic: RemoteCharacteristic,
        withResponse: Bool
    ) async throws(BluetoothError) {
        let reply = try await ask(
            .write(
                device: table.address,
                attribute: characteristic.handle,
                hex: Hexadecimal.text(bytes.span),
                withResponse: withResponse
            )
        )
        guard case .done = reply else { throw Self.unexpected(reply) }
    }

    func writeWithoutResponse(
        _ bytes: [UInt8],
        to characteristic: RemoteCharacteristic
    ) async throws(BluetoothError) {
        try await write(bytes, to: characteristic, withResponse: false)
    }

    private func ask(_ call: ControlCall) async throws(BluetoothError) -> ControlReply {
        do throws(ControlSocketError) {
            return try await ControlClient.reply(to: call, at: path)
        } catch {
            throw BluetoothError(.serviceUnavailable, error.description)
        }
    }

    private static func unexpected(_ reply: ControlReply) -> BluetoothError {
        switch reply {
        case .failed(let failure): failure.error
        case .refused(let reason), .notServed(let reason): BluetoothError(.other, reason)
        default: BluetoothError(.other, misunderstood)
        }
    }

    // MARK: - Subscriptions

    func subscribe(
        to characteristic: RemoteCharacteristic,
        by path: NotificationPath,
        token: SubscriptionToken,
        sink: any NotificationSink
    ) async throws(BluetoothError) {
        let call = ControlCall.watch(device: table.address, attribute: characteristic.handle)
        let replies: AsyncStream<ControlReply>
        do throws(ControlSocketError) {
            replies = try ControlClient.replies(to: call, at: self.path)
        } catch {
            throw BluetoothError(.serviceUnavailable, error.description)
        }
        let answers = AsyncStream.makeStream(of: ControlReply?.self)
        let watch = Task { await follow(replies, token, sink, answers.continuation) }
        shared.withLock { $0.watches[token] = watch }
        for await answer in answers.stream {
            if case .watching? = answer { return }
            throw answer.map { Self.unexpected($0) } ?? BluetoothError(.serviceUnavailable, "the daemon has ended")
        }
        throw BluetoothError(.cancelled, "cancelled")
    }

    /// Passes on values until the subscription or the link ends; the first reply completes the subscription.
    private func follow(
        _ replies: AsyncStream<ControlReply>,
        _ token: SubscriptionToken,
        _ sink: any NotificationSink,
        _ first: AsyncStream<ControlReply?>.Continuation
    ) async {
        var end = BluetoothError(.serviceUnavailable, "the daemon has ended")
        var isWatching = false
        // The daemon keeps the connection open after its last reply, for another request.
        answers: for await reply in replies {
            switch reply {
            case .value(let value):
                guard let bytes = value.octets else { break }
                sink.receive(bytes.span, for: token, at: Timestamp(microseconds: value.time))
                sink.flush()
            case .watching:
                isWatching = true
                first.yield(reply)
            default:
                end = Self.unexpected(reply)
                first.yield(reply)
                break answers
            }
        }
        first.yield(nil)
        first.finish()
        guard isWatching, !Task.isCancelled else { return }
        switch end.kind {
        case .notConnected: linkEnded()
        case .serviceUnavailable:
            Terminal.printError("gattherd: \(Terminal.harmless(end.detail))")
            linkEnded()
        default: post.yield(.subscriptionEnded(token, peripheral))
        }
    }

    func unsubscribe(_ token: SubscriptionToken) async throws(BluetoothError) {
        shared.withLock { $0.watches.removeValue(forKey: token) }?.cancel()
    }

    // MARK: - Operations that the daemon does not offer

    private static let notHere = BluetoothError(
        .notSupported,
        "the daemon has the device, and does not support this operation"
    )

    func startDiscovery(on adapter: BluetoothAddress) async throws(BluetoothError) {
        throw Self.notHere
    }

    func startDiscovery(on adapter: BluetoothAddress, filter: DiscoveryFilter) async throws(BluetoothError) {
        throw Self.notHere
    }

    func stopDiscovery(on adapter: BluetoothAddress) async throws(BluetoothError) {}
    func write(_ bytes: [UInt8], to descriptor: RemoteDescriptor) async throws(BluetoothError) { throw Self.notHere }
    func mtu(of peripheral: PeripheralID) async throws(BluetoothError) -> Int? { nil }
    func rssi(of peripheral: PeripheralID) async throws(BluetoothError) -> Int { throw Self.notHere }
    func setPowered(_ isPowered: Bool, adapter: BluetoothAddress) async throws(BluetoothError) { throw Self.notHere }
    func forget(_ peripheral: PeripheralID) async throws(BluetoothError) { throw Self.notHere }
}
