import GattherdBluetooth
import GattherdDaemon
import GattherdGATT
import GattherdModel

/// The cost of a new advertisement of one device: its frames are found, compared with the last ones, and decoded.
struct AdvertisementCost {
    private struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// Name, profile and payloads of advertisements; the payloads take turns.
    static let examples: [(name: String, profile: String, advertisements: [String])] = [
        (
            "advertisement of a RuuviTag: 10 metrics", "ruuvitag",
            [
                "0201061bff99040512fc5394c37c0004fffc040cac364200cdcbb8334c884f",
                "0201061bff99040512fd5394c37c0004fffc040cac364200cecbb8334c884f",
            ]
        ),
        (
            "advertisement of a BTHome sensor: 2 metrics", "bthome",
            ["0201060916d2fc400164020a09", "0201060916d2fc400164020b09"]
        ),
    ]

    private let profile: any Profile
    private let advertisements: [HeardAdvertisement]

    init(_ profile: any Profile, _ hexadecimal: [String]) {
        self.profile = profile
        let id = PeripheralID(adapter: BluetoothAddress(value: 1), address: BluetoothAddress(value: 0xC0FF_EE00_0001))
        advertisements = hexadecimal.map { text in
            let data = AdvertisingData(Hexadecimal.octets(text) ?? [])
            let frames = data.frames.map { HeardAdvertisement.Frame($0.source, $0.octets) }
            return HeardAdvertisement(peripheral: id, rssi: -70, frames: frames)
        }
    }

    /// Returns the time per advertisement.
    func nanoseconds(rounds: Int) throws -> Double {
        let frames = AdvertisedFrames([profile])
        let decoder = profile.makeDecoder(for: Sender(address: BluetoothAddress(value: 0xC0FF_EE00_0001)))
        var filter = FrameFilter()
        var samples: [Sample] = []
        let now = SuspendingClock.now
        var decoded = 0
        let time = try shortestMilliseconds {
            for _ in 0..<rounds {
                for advertisement in advertisements {
                    samples.removeAll(keepingCapacity: true)
                    for (payload, isNew) in filter.payloads(of: advertisement, frames, now: now) where isNew {
                        try decoder.decode(payload.octets.span, characteristic: payload.frame.index, into: &samples)
                    }
                    decoded += samples.count
                }
            }
        }
        guard decoded > 0 else { throw Failure(description: "\(profile.name) decodes nothing") }
        return time * 1e6 / Double(rounds * advertisements.count)
    }
}
