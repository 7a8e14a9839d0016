// Advertisements in Swift, written for ABI 1.0.
import GattherdGATT
import ProfileKit

struct Beacon: NativeProfile {
    static let name = "beacon"
    static let title = "Beacon"
    static let advertisements: [ProfileAdvertisement<Self>] = [
        .init(
            .manufacturer(0x0499),
            stream: "counted",
            name: "B*",
            begins: "?? 0F",
            size: 3...9,
            .counted,
            silence: .seconds(10),
            renewal: .seconds(20),
            tests: [
                DecodingTest("01 0F 05", expect: ["level": 5, "place": "in \"the\" \\ shed\u{0007}"]),
                DecodingTest("01 0F 05", "01 0F 05", expect: [:]),
                DecodingTest(
                    "01 0F 05",
                    from: "C0:FF:EE:00:00:01",
                    key: "00000000000000000000000000000001",
                    expect: ["level": 198, "place": "in \"the\" \\ shed\u{0007}"]
                ),
                DecodingTest("01 0F", reject: "truncated"),
            ]
        ) { (beacon: inout Beacon, payload, samples: Samples<Metrics>) throws(PayloadError) in
            samples.emitCounter(UInt32(try payload.u8()))
            try payload.skip(1)
            samples.emit(.level, Int(try payload.u8()) + beacon.shift)
            samples.emit(.place, "in \"the\" \\ shed\u{0007}")
        },
        .init(.service(0xFCD2), stream: "open", .open) { (payload, samples: Samples<Metrics>) throws(PayloadError) in
            samples.emit(.level, try payload.u8())
        },
    ]

    private var shift = 0

    init() {}

    init(sender: AdvertisementSender) {
        guard let key = sender.key, key.count == 16 else { return }
        shift = Int(key[15]) + Int(sender.address.value >> 40)
    }

    enum Metrics: Int, MetricSet {
        case level
        case place

        var metric: Metric {
            switch self {
            case .level: Metric("level")
            case .place: Metric("place", kind: .state)
            }
        }
    }
}

private let exported = ExportedProfile(Beacon.self)

@c(gattherd_profile_v1)
public func gattherdProfile(hostMinor: UInt32) -> UnsafeRawPointer { unsafe exported.table }
