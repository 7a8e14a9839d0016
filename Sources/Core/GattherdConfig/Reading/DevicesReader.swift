import GattherdGATT
import GattherdModel

/// Reads the lists `devices` and `enrol`.
struct DevicesReader {
    /// The first level of the gateway's own MQTT topics.
    private static let reserved = "bridge"

    let paths: PathRule

    func devices(_ top: SectionReader) -> [DeviceSettings] {
        var names: [String: String] = [:]
        var addresses: [BluetoothAddress: String] = [:]
        return top.sections("devices", title: "a device") { section in
            let name = section.required("name", deviceName)
            let address = section.required("address", .bluetoothAddress)
            if let name { claim(name.value, of: "name", at: name.place, in: &names, section) }
            if let address { claim(address.value, of: "address", at: address.place, in: &addresses, section) }
            return device(name, address, section)
        }
    }

    func rules(_ top: SectionReader) -> [EnrolRule] {
        top.sections("enrol", title: "a rule of 'enrol'") { section in
            let name = section.required("name", nameTemplate)
            let profiles = section.list("profiles", .slug)
            let match = section.section("match") { self.match($0) }
            if match == nil, let place = section.place {
                let advice = "say what a peripheral must have: service, name, model or rssi_at_least"
                section.report(.missing(key: "match", section: "a rule of 'enrol'", advice: advice), at: place)
            }
            let forgetAfter = section.value("forget_after", .retention)?.value
            if match?.model != nil, profiles == nil, let place = section.place {
                let advice = "write the profiles of the model, such as [govee]; gattherd scan shows them"
                section.report(.missing(key: "profiles", section: "a rule with 'model'", advice: advice), at: place)
            }
            guard let name, let match else { return nil }
            var rule = EnrolRule(match: match, name: name.value, profiles: profiles)
            expectNames(of: rule, at: name.place, section)
            if let forgetAfter { rule.forgetAfter = forgetAfter }
            return rule
        }
    }

    private var deviceName: ConfigGrammar<String> {
        let slug = ConfigGrammar<String>.slug
        return ConfigGrammar(noun: slug.noun, advice: slug.advice + "; '\(Self.reserved)' is the gateway's own") {
            text in
            text == Self.reserved ? nil : slug.read(text)
        }
    }

    private var nameTemplate: ConfigGrammar<String> {
        let advice = "use a-z, 0-9, '_', '-', {profile} and, once, {address}"
        return ConfigGrammar(noun: "a pattern for names", advice: advice) { text in
            guard text.split(separator: "{address}", omittingEmptySubsequences: false).count == 2 else { return nil }
            let rest = text.split(separator: "{address}").joined().split(separator: "{profile}").joined()
            return rest.utf8.allSatisfy { Slug.isAllowed($0) } ? text : nil
        }
    }

    /// Reports a rule whose names would be too long: it would never make a device.
    private func expectNames(of rule: EnrolRule, at place: ConfigPlace?, _ section: SectionReader) {
        guard let place else { return }
        // A rule without profiles may use any; the shortest name has one letter.
        let profile = rule.profiles?.first?.value ?? "p"
        guard rule.deviceName(for: BluetoothAddress(value: 0), profile: profile) == nil else { return }
        let advice = "shorten it: with the 12 digits of an address, a name has at most \(Slug.longest) bytes"
        section.report(.invalid(rule.name, expected: "a pattern for names", advice: advice), at: place)
    }

    /// The longest list of gateways in bytes, with commas: the centre would ignore a longer one.
    private static let longestList = 4096

    private func gateways(_ section: SectionReader) -> [Located<String>]? {
        let gateways = section.list("gateways", .slug)
        section.refuseEmpty("gateways", "no gateway may own the device; name one, or leave 'gateways' out")
        let size = gateways?.reduce(-1) { $0 + 1 + $1.value.utf8.count } ?? 0
        if size > Self.longestList, let place = section.place(of: "gateways") {
            let words = "the list 'gateways' has \(size) bytes with its commas"
            section.report(.conflict("\(words); at most \(Self.longestList) are allowed"), at: place)
        }
        return gateways
    }

    private func device(
        _ name: Located<String>?,
        _ address: Located<BluetoothAddress>?,
        _ section: SectionReader
    ) -> DeviceSettings? {
        let profiles = section.list("profiles", .slug)
        let adapter = section.value("adapter", .bluetoothAddress)
        let gateways = gateways(section)
        let notify = section.value("notify", ConfigGrammar<NotifyChoice>.choice("a way of notification"))
        var device = name.flatMap { name in address.map { DeviceSettings(name: name, address: $0) } }
        readLabel(section, into: &device)
        device?.profiles = profiles
        device?.adapter = adapter
        device?.gateways = gateways
        device?.notify = notify?.value
        readPairing(section, into: &device)
        readListening(section, into: &device)
        section.section("options") { options in
            for name in options.names {
                let value = options.value(name.value, .integer(Int(Int32.min)...Int(Int32.max)))
                device?.options[name.value] = value.map { Located(Int64($0.value), at: $0.place) }
            }
        }
        let controls = section.list("controls", .text)
        device?.controls = controls
        // Read also without a device, so that all errors are found at once.
        if let publish = section.section("publish", { PublishReader.device($0) }) { device?.publish = publish }
        return device
    }

    private func readLabel(_ section: SectionReader, into device: inout DeviceSettings?) {
        let title = section.value("title", label)?.value
        let area = section.value("area", label)?.value
        let note = section.value("note", remark)?.value
        device?.title = title
        device?.area = area
        device?.note = note
    }

    /// The grammar of remarks.
    private var remark: ConfigGrammar<String> {
        ConfigGrammar(noun: "a text for people", advice: "write 1 to 500 characters in one line") { text in
            let isPlain = !text.unicodeScalars.contains { $0.value < 0x20 || (0x7F...0x9F).contains($0.value) }
            return isPlain && (1...500).contains(text.count) && text.utf8.count <= 2000 ? text : nil
        }
    }

    /// The grammar of names for people.
    private var label: ConfigGrammar<String> {
        ConfigGrammar(noun: "a name for people", advice: "write 1 to 100 characters in one line") { text in
            let isPlain = !text.unicodeScalars.contains { $0.value < 0x20 || (0x7F...0x9F).contains($0.value) }
            return isPlain && (1...100).contains(text.count) && text.utf8.count <= 400 ? text : nil
        }
    }

    private func readPairing(_ section: SectionReader, into device: inout DeviceSettings?) {
        section.forbid("pin", .secret(key: "pin", instead: "put it into a file and write pin_file"))
        let pinFile = section.value("pin_file", .path).map { paths.resolve($0) }
        let pairing = section.value("pairing", ConfigGrammar<PairingChoice>.choice("a way of pairing"))
        let onBondLoss = section.value("on_bond_loss", ConfigGrammar<BondLossChoice>.choice("a remedy"))
        if pairing?.value == .passkey, section.place(of: "pin_file") == nil, let place = pairing?.place {
            let advice = "it names the file with the six digits"
            section.report(.missing(key: "pin_file", section: "'pairing: passkey'", advice: advice), at: place)
        }
        if let choice = pairing?.value, choice != .passkey, let place = section.place(of: "pin_file") {
            let advice = "'pin_file' has no effect with 'pairing: \(choice.rawValue)'; remove one of the two"
            section.report(.conflict(advice), at: place)
        }
        device?.pairing = pairing?.value ?? (pinFile == nil ? .onDemand : .passkey)
        device?.pinFile = pinFile
        device?.onBondLoss = onBondLoss?.value ?? .fail
    }

    private func readListening(_ section: SectionReader, into device: inout DeviceSettings?) {
        section.forbid("bind_key", .secret(key: "bind_key", instead: "put it into a file and write bind_key_file"))
        let file = section.value("bind_key_file", .path).map { paths.resolve($0) }
        section.forbid("irk", .secret(key: "irk", instead: "put it into a file and write irk_file"))
        let irkFile = section.value("irk_file", .path).map { paths.resolve($0) }
        let silence = silence(section)
        device?.bindKeyFile = file
        device?.irkFile = irkFile
        device?.silence = silence
    }

    /// Reads one limit for all streams, or a mapping of streams to limits.
    private func silence(_ section: SectionReader) -> SilenceSettings {
        var settings = SilenceSettings()
        guard section.isMapping("silence") else {
            settings.all = section.value("silence", .silence)
            return settings
        }
        section.section("silence") { streams in
            for name in streams.names { settings.streams[name] = streams.value(name.value, .silence)?.value }
        }
        return settings
    }

    private func match(_ section: SectionReader) -> EnrolRule.Match {
        var match = EnrolRule.Match()
        match.service = section.value("service", .uuid)?.value
        match.name = (section.value("name", .text)?.value).map { NamePattern($0) }
        match.model = (section.value("model", .text)?.value).map { NamePattern($0) }
        match.rssiAtLeast = section.value("rssi_at_least", .integer(-127...20))?.value
        let isEmpty = ["service", "name", "model", "rssi_at_least"].allSatisfy { section.place(of: $0) == nil }
        if isEmpty, let place = section.place {
            let advice = "without one, any peripheral in reach would become a device"
            section.report(
                .missing(key: "service', 'name', 'model' or 'rssi_at_least", section: "'match'", advice: advice),
                at: place
            )
        }
        return match
    }

    /// Reports a value that an earlier device has.
    private func claim<Value: Hashable & CustomStringConvertible>(
        _ value: Value,
        of what: String,
        at place: ConfigPlace?,
        in claimed: inout [Value: String],
        _ section: SectionReader
    ) {
        guard let place else { return }
        if let first = claimed[value] {
            section.report(.duplicate(value.description, what: what, first: first), at: place)
        } else {
            claimed[value] = place.description
        }
    }
}
