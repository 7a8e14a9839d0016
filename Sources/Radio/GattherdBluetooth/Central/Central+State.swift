import GattherdSync

// The availability of Bluetooth, and the used adapter.
extension Central {
    /// The current availability of Bluetooth.
    public var state: CentralState { stateBoard.state }

    /// The current ``state``, then each newer one; a slow consumer skips intermediate states.
    public var states: AsyncStream<CentralState> { stateBoard.watch() }

    /// All adapters of this machine, by name.
    public var adapters: [AdapterStatus] { registry.withLock { $0.platform.sortedAdapters } }

    /// The used adapter; `nil` if it is missing.
    public var adapter: AdapterStatus? { registry.withLock { $0.platform.adapter(configuration.adapter) } }

    /// Waits until ``state`` is ``CentralState/poweredOn``.
    ///
    /// - Parameter timeout: The limit; `nil` for none.
    /// - Throws: `accessDenied` at once without access; at the deadline `adapterUnavailable` or `serviceUnavailable`,
    ///   with the cause and the remedy; `serviceUnavailable` at once if the central is closed; `cancelled`.
    public func waitUntilReady(timeout: Duration? = .seconds(10)) async throws {
        let isReady: Bool?
        do throws(BluetoothError) {
            if let timeout {
                let over = BluetoothError(.timedOut, "not ready")
                isReady = try await withDeadline(.now.advanced(by: timeout.settable), over) {
                    () throws(BluetoothError) in
                    try await self.waitForPower()
                }
            } else {
                isReady = try await waitForPower()
            }
        } catch {
            throw (error.kind == .timedOut ? unreadiness : error).during(.waitUntilReady)
        }
        guard isReady == true else {
            throw (isClosed ? unreadiness : BluetoothError(.cancelled, "cancelled")).during(.waitUntilReady)
        }
    }

    /// Returns `nil` if the task is cancelled or the central closed.
    func waitForPower() async throws(BluetoothError) -> Bool? {
        for await state in states {
            if state == .poweredOn { return true }
            if state == .unauthorized { throw unreadiness }
        }
        return nil
    }

    /// The error that names the missing part.
    var unreadiness: BluetoothError {
        registry.withLock { registry in
            guard !registry.isClosed else { return BluetoothError(.serviceUnavailable, "the central is closed") }
            guard life.state == .running else {
                return BluetoothError(.serviceUnavailable, "the central is not running: use withCentral, or call run()")
            }
            switch registry.state(configuration.adapter) {
            case .unauthorized: return BluetoothError(.accessDenied, registry.platform.detail ?? "access denied")
            case .unknown, .resetting:
                let detail = registry.platform.detail ?? "bluetoothd has not answered yet"
                return BluetoothError(.serviceUnavailable, detail)
            case .unsupported: return BluetoothError(.adapterUnavailable, Self.missing(configuration.adapter))
            case .poweredOff, .poweredOn:
                return BluetoothError(.adapterUnavailable, Self.off(registry.platform.adapter(configuration.adapter)))
            }
        }
    }

    private static func missing(_ choice: AdapterChoice) -> String {
        switch choice {
        case .automatic: "there is no Bluetooth adapter"
        case .address(let address): "there is no adapter \(address)"
        case .name(let name): "there is no adapter \(name)"
        }
    }

    private static func off(_ adapter: AdapterStatus?) -> String {
        let name = adapter?.name ?? "the adapter"
        return adapter?.isBlocked == true
            ? "\(name) is blocked; free it with 'rfkill unblock bluetooth'"
            : "\(name) is off; switch it on with 'bluetoothctl power on'"
    }
}

/// The availability of Bluetooth.
public enum CentralState: String, Hashable, Sendable, CaseIterable {
    /// The state is not known yet.
    case unknown
    /// bluetoothd, or the bus, is missing; the central keeps trying.
    case resetting
    /// There is no adapter, or not the one that was chosen.
    case unsupported
    /// The bus denies this user access to bluetoothd.
    case unauthorized
    /// The adapter is off, or blocked by a switch.
    case poweredOff
    case poweredOn
}
