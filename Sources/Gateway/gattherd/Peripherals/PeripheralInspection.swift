import GattherdBluetooth
import GattherdGATT
import GattherdProfiles

/// Reads all attributes of a peripheral and collects its notifications.
struct PeripheralInspection {
    /// Generic Access and Generic Attribute: services about the link, not about the device's purpose.
    private static let generic: [BluetoothUUID] = [0x1800, 0x1801]
    private static let maximumValues = 3

    private let peripheral: GattherdBluetooth.Peripheral
    private let timeout: Duration

    /// - Parameters:
    ///   - peripheral: The connected peripheral.
    ///   - timeout: The time to wait for notifications.
    init(_ peripheral: GattherdBluetooth.Peripheral, timeout: Duration) {
        self.peripheral = peripheral
        self.timeout = timeout
    }

    func characteristics() async throws -> [SkeletonCharacteristic] {
        let all = try await peripheral.discoverAll().filter { !Self.generic.contains($0.uuid) }
            .flatMap(\.characteristics)
        let heard = try await listen(to: all.filter { !$0.properties.isDisjoint(with: [.notify, .indicate]) })
        var found: [SkeletonCharacteristic] = []
        for characteristic in all {
            var entry = await describe(characteristic)
            for bytes in heard.values[characteristic.id] ?? [] where !entry.values.contains(bytes) {
                entry.values.append(bytes)
            }
            entry.remarks += heard.remarks[characteristic.id].map { [$0] } ?? []
            found.append(entry)
        }
        return found
    }

    private func describe(_ characteristic: Characteristic) async -> SkeletonCharacteristic {
        let properties = characteristic.properties
        var entry = SkeletonCharacteristic(service: characteristic.service, uuid: characteristic.uuid)
        entry.isReadable = properties.contains(.read)
        entry.notifies = properties.contains(.notify)
        entry.indicates = properties.contains(.indicate)
        entry.isWritable = !properties.isDisjoint(with: [.write, .writeWithoutResponse])
        entry.isCommand = entry.isWritable && !properties.contains(.write)
        for descriptor in characteristic.descriptors {
            guard let bytes = try? await peripheral.readValue(for: descriptor) else { continue }
            if descriptor.uuid == 0x2901 { entry.description = String(decoding: bytes, as: UTF8.self) }
            if descriptor.uuid == 0x2904 { entry.formats.append(bytes) }
        }
        guard entry.isReadable else { return entry }
        do {
            entry.values = [try await peripheral.readValue(for: characteristic.id)]
        } catch {
            entry.remarks.append("Reading it failed: \(error)")
        }
        return entry
    }

    // MARK: - Notifications

    private struct Heard: Sendable {
        var values: [CharacteristicID: [[UInt8]]] = [:]
        var remarks: [CharacteristicID: String] = [:]
    }

    /// Waits until each characteristic has sent a value, or the time is over.
    private func listen(to characteristics: [Characteristic]) async throws -> Heard {
        var heard = Heard()
        let updates = peripheral.valueUpdates(buffering: .bufferingOldest(1024))
        var waiting: Set<CharacteristicID> = []
        for characteristic in characteristics {
            do {
                try await peripheral.setNotifyValue(true, for: characteristic.id)
                waiting.insert(characteristic.id)
            } catch {
                heard.remarks[characteristic.id] = "Listening failed: \(error)"
            }
        }
        await hear(updates, waiting, &heard)
        for characteristic in characteristics {
            // The link may have ended meanwhile; then there is no subscription left.
            try? await peripheral.setNotifyValue(false, for: characteristic.id)
            if heard.values[characteristic.id] == nil, heard.remarks[characteristic.id] == nil {
                heard.remarks[characteristic.id] = "No notification within \(RelativeTime.length(timeout))."
            }
        }
        return heard
    }

    private func hear(
        _ updates: BufferedSequence<CharacteristicValue>,
        _ waiting: Set<CharacteristicID>,
        _ heard: inout Heard
    ) async {
        guard !waiting.isEmpty else { return }
        var silent = waiting
        var values: [CharacteristicID: [[UInt8]]] = [:]
        await withTaskGroup { group in
            group.addTask {
                try? await Task.sleep(for: timeout)
                updates.stop()
            }
            for await value in updates {
                let seen = values[value.characteristic] ?? []
                if seen.count < Self.maximumValues, !seen.contains(value.octets) {
                    values[value.characteristic] = seen + [value.octets]
                }
                silent.remove(value.characteristic)
                if silent.isEmpty { break }
            }
            group.cancelAll()
        }
        heard.values = values
    }
}
