import GattherdBlueZ
import GattherdBluetooth
import GattherdDaemon
import GattherdGATT
import GattherdGateway
import GattherdModel
import GattherdProcess
import GattherdProfiles
import GattherdSync
import Glibc

/// A search for one peripheral by its address or its name.
struct PeripheralSearch {
    enum Target: Sendable {
        case address(BluetoothAddress)
        /// An advertised name, or brand and model; `*` stands for any text.
        case name(NamePattern)
    }

    /// The time that is waited for scan responses and for others of the same name.
    private static let settlingTime = Duration.seconds(3)
    private static let most = 256

    let target: Target
    /// The target as it was written, for people.
    let title: String
    let limit: Duration
    let registry: ProfileRegistry

    /// The outcome if nothing was heard.
    var silence: String {
        switch target {
        case .address(let address): "\(address) was not heard"
        case .name: "no name or model '\(Terminal.harmless(title))' was heard (upper and lower case matter)"
        }
    }

    /// Listens until the peripheral was heard for long enough, or the limit has passed.
    ///
    /// - Returns: The peripherals that fit, the strongest signal first; `nil` if a signal requests the end.
    func run(_ central: Central) async throws -> [HeardPeripheral]? {
        let heard = Locked<[BluetoothAddress: Advertisement]>([:])
        guard try await listen(central, heard) else { return nil }
        let fitting = heard.withLock { Array($0.values) }.map { found($0) }
        guard !fitting.isEmpty else { return connected(central) }
        return fitting.sorted { $0.rssi ?? 0 > $1.rssi ?? 0 }
    }

    /// Records the advertisements that fit; returns false if a signal requests the end.
    private func listen(_ central: Central, _ heard: Locked<[BluetoothAddress: Advertisement]>) async throws -> Bool {
        let signals = ProcessSignals.stream(of: SIGINT, SIGTERM, terminating: [SIGINT, SIGTERM])
        Terminal.printError("listening for \(Terminal.harmless(title)), at most \(RelativeTime.length(limit))")
        let (firsts, first) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        return try await withThrowingTaskGroup(of: Bool.self) { group in
            group.addTask {
                try await central.waitUntilReady()
                for try await advertisement in central.scan(services: [], allowDuplicates: true)
                where fits(advertisement) {
                    heard.withLock { heard in
                        guard heard.count < Self.most || heard[advertisement.address] != nil else { return }
                        heard[advertisement.address] = advertisement
                    }
                    first.yield()
                }
                return true
            }
            group.addTask {
                for await _ in firsts { break }
                try? await Task.sleep(for: Self.settlingTime)
                return true
            }
            group.addTask {
                try await central.waitUntilReady()
                try? await Task.sleep(for: limit)
                return true
            }
            group.addTask {
                for await _ in signals { return false }
                return true
            }
            let isComplete = try await group.next() ?? true
            group.cancelAll()
            return isComplete
        }
    }

    private func fits(_ advertisement: Advertisement) -> Bool {
        switch target {
        case .address(let address): return advertisement.address == address
        case .name(let pattern):
            if let name = advertisement.name, pattern.fits(name) { return true }
            let model = registry.identify(AdvertisedTraits(advertisement))?.model
            return model.map { pattern.fits($0.description) } ?? false
        }
    }

    private func found(_ advertisement: Advertisement) -> HeardPeripheral {
        HeardPeripheral(
            address: advertisement.address,
            name: advertisement.name,
            rssi: advertisement.rssi,
            hasPrivateAddress: advertisement.hasPrivateAddress,
            candidates: registry.candidates(AdvertisedTraits(advertisement))
        )
    }

    /// Returns the connected peripherals that fit, which do not advertise.
    private func connected(_ central: Central) -> [HeardPeripheral] {
        central.connectedPeripherals().filter { peripheral in
            switch target {
            case .address(let address): peripheral.address == address
            case .name(let pattern): peripheral.name.map { pattern.fits($0) } ?? false
            }
        }
        .map { HeardPeripheral(address: $0.address, name: $0.name, rssi: nil) }
    }
}
