import GattherdBluetooth
import GattherdGATT
import GattherdModel
import GattherdSync

/// GATT operations on request, over the supervisor's links.
///
/// Values read or watched here go to the requester only and are not stored as readings. A watch is one more subscriber
/// of the link session's subscription.
public struct DeviceAccess: Sendable {
    let configuredDevices: ConfiguredDevices
    let status: SupervisorStatus
    let context: LinkSessionContext
    let watches: DeviceWatches
    /// The limit of the wait for a link and its GATT table.
    let connectTimeout: Duration
    /// Requests an immediate attempt for a device that is backing off.
    let release: @Sendable (String) -> Void

    /// Answers a request for a GATT operation and sends the values of a watch to `stream`.
    public func answer(_ call: ControlCall, _ stream: ControlStream) async -> ControlReply {
        switch call {
        case .table(let target): return await table(of: target)
        case .read(let target, let attribute):
            return await perform(on: target) { link throws(BluetoothError) in try await read(attribute, of: link) }
        case .write(let target, let attribute, let hex, let withResponse):
            return await perform(on: target) { link throws(BluetoothError) in
                guard let octets = Hexadecimal.octets(hex) else {
                    throw BluetoothError(.invalidValue, "'\(hex)' is not hexadecimal")
                }
                let characteristic = try await characteristic(attribute, of: link)
                try await context.central.write(octets, to: characteristic, withResponse: withResponse)
                return .done("\(octets.count) bytes written")
            }
        case .watch(let target, let attribute):
            return await perform(on: target) { link throws(BluetoothError) in
                try await watch(characteristic(attribute, of: link), stream)
            }
        default: return .refused("this is not a GATT operation")
        }
    }

    private func device(_ target: String) -> SupervisedDevice? {
        configuredDevices[target] ?? BluetoothAddress(anyNotation: target).flatMap { configuredDevices[$0] }
    }

    /// Returns the link of a device if the device is ready.
    private func link(of device: SupervisedDevice) -> PeripheralID? {
        guard let status = self.status.link(of: device.name), status.state == .ready else { return nil }
        return status.adapter.flatMap { BluetoothAddress($0) }.map {
            PeripheralID(adapter: $0, address: device.address)
        }
    }

    private func perform(
        on target: String,
        _ operation: (PeripheralID) async throws(BluetoothError) -> ControlReply
    ) async -> ControlReply {
        do throws(BluetoothError) {
            guard let link = device(target).flatMap(link) else {
                throw BluetoothError(.notConnected, "\(target) is not connected any more")
            }
            return try await operation(link)
        } catch {
            return .failed(DeviceFailure(error))
        }
    }

    // MARK: - The GATT table

    private func table(of target: String) async -> ControlReply {
        guard let device = device(target) else { return .notServed("the daemon has no device '\(target)'") }
        switch await readiness(of: device) {
        case .notWanted(let status): return .notServed("\(device.name) is \(status.state.rawValue)")
        case .notReady(let status):
            let reason = [status?.reason?.rawValue, status?.detail].compactMap(\.self).joined(separator: ": ")
            let state = status.map { "is \($0.state.rawValue)" } ?? "has left"
            return .refused("\(device.name) \(state)" + (reason.isEmpty ? "" : " (\(reason))"))
        case .ready:
            return await perform(on: device.name) { link throws(BluetoothError) in
                let services = try await context.central.services(of: link, timeout: context.resolveTimeout)
                return .table(GATTTableReply(link, name: context.peripheralName(link), services))
            }
        }
    }

    private enum Readiness {
        case ready
        /// The device is on hold, or a retry is pointless: no link is expected.
        case notWanted(LinkStatus)
        case notReady(LinkStatus?)
    }

    /// Waits until the device is ready, an attempt fails or the limit is reached; ends a back-off first.
    private func readiness(of device: SupervisedDevice) async -> Readiness {
        let before = self.status.link(of: device.name)
        if before?.state == .backingOff, before?.reason != .rotated { release(device.name) }
        let limit = connectTimeout + context.resolveTimeout
        return await withTaskGroup(of: Readiness?.self) { group in
            group.addTask { await outcome(of: device, since: before) }
            group.addTask {
                try? await Task.sleep(for: limit, clock: .loop)
                return nil
            }
            defer { group.cancelAll() }
            return await group.next().flatMap(\.self) ?? .notReady(self.status.link(of: device.name))
        }
    }

    private func outcome(of device: SupervisedDevice, since before: LinkStatus?) async -> Readiness? {
        for await _ in self.status.changes.watch() {
            guard let status = self.status.link(of: device.name) else { return .notReady(nil) }
            switch status.state {
            case .ready: return .ready
            case .held, .failed: return .notWanted(status)
            case .backingOff where status.since != before?.since: return .notReady(status)
            case .backingOff, .waiting, .connecting, .discovering, .preparing, .disconnecting, .disconnected: break
            }
        }
        return nil
    }

    // MARK: - Attributes

    private func characteristic(
        _ handle: String,
        of link: PeripheralID
    ) async throws(BluetoothError) -> RemoteCharacteristic {
        let services = try await context.central.services(of: link, timeout: context.resolveTimeout)
        guard let found = services.lazy.flatMap(\.characteristics).first(where: { $0.handle == handle }) else {
            throw BluetoothError(.unknownAttribute, "\(link.address) has no such characteristic any more")
        }
        return found
    }

    private func read(_ handle: String, of link: PeripheralID) async throws(BluetoothError) -> ControlReply {
        let services = try await context.central.services(of: link, timeout: context.resolveTimeout)
        let octets: [UInt8]
        if let descriptor = services.lazy.flatMap(\.descriptors).first(where: { $0.handle == handle }) {
            octets = try await context.central.read(descriptor)
        } else {
            octets = try await context.central.read(try await characteristic(handle, of: link))
        }
        return .value(DeviceValue(octets, at: context.now()))
    }

    private func watch(
        _ characteristic: RemoteCharacteristic,
        _ stream: ControlStream
    ) async throws(BluetoothError) -> ControlReply {
        let token = context.intake.newToken()
        let watch = watches.start(token, characteristic.peripheral)
        defer { watches.end(token) }
        try await context.central.subscribe(to: characteristic, by: .signals, token: token, sink: watch)
        stream.send(.watching)
        await withTaskGroup { group in
            group.addTask { for await value in watch.values { stream.send(.value(value)) } }
            group.addTask { await stream.waitForHangUp() }
            await group.next()
            group.cancelAll()
        }
        try? await context.central.unsubscribe(token)
        return .failed(DeviceFailure(watch.end ?? BluetoothError(.cancelled, "the client has disconnected")))
    }
}
