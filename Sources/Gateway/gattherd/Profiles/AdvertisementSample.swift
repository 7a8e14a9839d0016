import GattherdCapture
import GattherdGATT
import GattherdGateway
import GattherdModel
import GattherdProfiles

/// The advertisements of one device, for a new profile.
struct AdvertisementSample {
    private var name: String?
    private var address: BluetoothAddress?
    private var frames: [(source: AdvertisementSource, octets: [UInt8])] = []

    /// - Parameters:
    ///   - input: Advertisements in hexadecimal, or the path of a file.
    ///   - arguments: The arguments, with the option `address`.
    /// - Throws: ``CommandFailure`` if the input is wrong, or has no data of one device.
    init(_ input: String, _ arguments: Arguments) throws(CommandFailure) {
        address = try SenderOptions(arguments).address
        let isHexadecimal = input.isEmpty || AdvertisementTextReader.octets(input)?.isEmpty == false
        try select(
            isHexadecimal
                ? try CaptureFile.advertisements(inArgument: input, of: "--from-advertisement")
                : try Self.advertisements(of: input)
        )
    }

    private static func advertisements(of path: String) throws(CommandFailure) -> [CapturedAdvertisement] {
        var advertisements: [CapturedAdvertisement] = []
        try CaptureFile(path: path).forEach { (entry) throws(CommandFailure) in
            guard case .advertisement(let advertisement) = entry else {
                throw CommandFailure(
                    .data,
                    "gattherd: \(path) is of a connection; capture with --advertisements, or use --from-device"
                )
            }
            advertisements.append(advertisement)
        }
        return advertisements
    }

    /// Returns the skeleton of a profile of the advertisements.
    func skeleton(_ name: String) -> AdvertisementSkeleton {
        let origin = [self.name, address?.description].compactMap(\.self).joined(separator: ", ")
        return AdvertisementSkeleton(
            name: name,
            origin: origin.isEmpty ? "a device" : origin,
            deviceName: self.name,
            frames: frames
        )
    }

    /// Keeps the advertisements of the chosen device, or of the only one.
    private mutating func select(_ advertisements: [CapturedAdvertisement]) throws(CommandFailure) {
        let senders = Set(advertisements.compactMap(\.address))
        if address == nil, senders.count > 1 {
            let some = senders.sorted().prefix(5).map(\.description).joined(separator: ", ")
            let more = senders.count > 5 ? ", …" : ""
            throw CommandFailure(
                .data,
                "gattherd: there are \(senders.count) devices; choose one with --address: \(some)\(more)"
            )
        }
        let chosen = address ?? senders.first
        address = chosen
        for advertisement in advertisements where advertisement.address == nil || advertisement.address == chosen {
            let data = AdvertisingData(advertisement.octets)
            name = data.name ?? name
            frames += data.frames
        }
        guard !frames.isEmpty else {
            let whom = chosen.map { " of \($0)" } ?? ""
            throw CommandFailure(
                .data,
                "gattherd: there is no advertisement\(whom) with manufacturer or service data; "
                    + "see its parts: gattherd profile decode --advertisement HEX"
            )
        }
    }
}
