/// Reads the section `mqtt`.
struct MQTTReader {
    let gateway: String
    let paths: PathRule

    func settings(_ section: SectionReader) -> MQTTSettings? {
        let broker = broker(section)
        var settings = MQTTSettings(
            broker: broker?.value ?? BrokerAddress(host: "localhost", port: 1883),
            gateway: gateway
        )
        section.read("version", .choice("a version of MQTT"), into: &settings.version)
        section.read("client_id", clientID, into: &settings.clientID)
        section.read("retain", .boolean, into: &settings.retains)
        section.read("controls", .boolean, into: &settings.setsControls)
        section.read("descriptions", .boolean, into: &settings.publishesDescriptions)
        section.read("backlog_rate", .integer(1...1_000_000), into: &settings.backlogRate)
        settings.longestBacklog = section.value(OutputSection.backlogKey, .backlog)?.value
        section.section("publish") { settings.publish = PublishReader.settings($0) }
        credentials(section, &settings)
        section.section("home_assistant") { homeAssistant($0, &settings.homeAssistant) }
        baseTopic(section, &settings)
        tls(section, broker, &settings)
        return broker == nil ? nil : settings
    }

    /// The grammar of client identifiers; more than the 23 bytes that every broker must accept.
    private var clientID: ConfigGrammar<String> {
        ConfigGrammar(noun: "a client identifier", advice: "use 1 to 128 printable characters") { text in
            let isPrintable = text.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0x7F }
            return (1...128).contains(text.utf8.count) && isPrintable ? text : nil
        }
    }

    private func broker(_ section: SectionReader) -> Located<BrokerAddress>? {
        let grammar = ConfigGrammar<BrokerAddress>.broker
        let text = ConfigGrammar(noun: grammar.noun, advice: grammar.advice) { $0 }
        guard let url = section.required("url", text), let place = url.place else { return nil }
        if url.value.contains("@") {
            let instead = "write username and password_file instead of user:password@"
            section.report(.secret(key: "url", instead: instead), at: place)
            return nil
        }
        guard let address = grammar.read(url.value) else {
            section.report(.invalid(url.value, expected: grammar.noun, advice: grammar.advice), at: place)
            return nil
        }
        return Located(address, at: place)
    }

    private func credentials(_ section: SectionReader, _ settings: inout MQTTSettings) {
        let instead = "put it into a file that only gattherd may read, and write password_file"
        section.forbid("password", .secret(key: "password", instead: instead))
        settings.username = section.value("username", .text)?.value
        settings.passwordFile = section.value("password_file", .path).map { paths.resolve($0) }
        if section.place(of: "username") == nil, let place = section.place(of: "password_file") {
            section.report(.missing(key: "username", section: "'mqtt'", advice: "a password goes with one"), at: place)
        }
    }

    private func homeAssistant(_ section: SectionReader, _ settings: inout MQTTSettings.HomeAssistant) {
        section.read("discovery", .boolean, into: &settings.isDiscoverable)
        section.read("prefix", topic, into: &settings.prefix)
    }

    /// Reads the base topic, which must be apart from Home Assistant's topics.
    private func baseTopic(_ section: SectionReader, _ settings: inout MQTTSettings) {
        guard let base = section.value("base_topic", baseTopic) else { return }
        settings.baseTopic = base.value
        let (own, home) = (base.value + "/", settings.homeAssistant.prefix + "/")
        if own.hasPrefix(home) || home.hasPrefix(own), let place = base.place {
            let reason = "'base_topic' and Home Assistant's '\(settings.homeAssistant.prefix)' are in one tree"
            section.report(.conflict("\(reason); write for example gattherd/\(gateway)"), at: place)
        }
    }

    /// The grammar of base topics; some brokers accept no topics of many levels, and no long ones.
    private var baseTopic: ConfigGrammar<String> {
        let advice = "write 1 to 8 levels such as site-a/\(gateway), without '#', '+', empty levels and a first '$'"
        return ConfigGrammar(noun: "a base topic", advice: advice) { text in
            let levels = text.split(separator: "/", omittingEmptySubsequences: false)
            let isPlain = !text.unicodeScalars.contains {
                $0.value < 0x20 || (0x7F...0x9F).contains($0.value) || "#+".unicodeScalars.contains($0)
            }
            let isShort = levels.count <= 8 && text.utf8.count <= 200
            return isPlain && isShort && !text.hasPrefix("$") && !levels.contains("") ? text : nil
        }
    }

    private var topic: ConfigGrammar<String> {
        ConfigGrammar(noun: "a topic", advice: "use no '#', no '+' and no '/' at an end") { text in
            let isPlain = !text.utf8.contains { $0 < 0x20 || "#+".utf8.contains($0) }
            return !text.isEmpty && isPlain && !text.hasPrefix("/") && !text.hasSuffix("/") ? text : nil
        }
    }

    private func tls(_ section: SectionReader, _ broker: Located<BrokerAddress>?, _ settings: inout MQTTSettings) {
        section.section("tls") { settings.tls = tls($0) }
        if let place = section.place(of: "tls"), let broker, !broker.value.usesTLS {
            let advice = "write mqtts://HOST:8883, or remove 'tls'"
            section.report(.conflict("'tls' needs a broker's URL that begins with mqtts://; \(advice)"), at: place)
        }
    }

    private var serverName: ConfigGrammar<String> {
        ConfigGrammar(noun: "a name", advice: "write the name or the address that the broker's certificate is for") {
            text in
            let isIPv6 = text.count { $0 == ":" } > 1 && text.allSatisfy { $0.isHexDigit || ":.".contains($0) }
            return isIPv6 || HostAndPort.read(text[...]).map { $0.port == nil } ?? false ? text : nil
        }
    }

    private func tls(_ section: SectionReader) -> MQTTSettings.TLS {
        var tls = MQTTSettings.TLS()
        tls.ca = section.value("ca", .path).map { paths.resolve($0) }
        tls.certificate = section.value("certificate", .path).map { paths.resolve($0) }
        tls.key = section.value("key", .path).map { paths.resolve($0) }
        tls.serverName = section.value("server_name", serverName)?.value
        section.read("min_version", .choice("a version of TLS"), into: &tls.minimumVersion)
        for (one, other) in [("certificate", "key"), ("key", "certificate")] {
            guard let place = section.place(of: one), section.place(of: other) == nil else { continue }
            section.report(
                .missing(key: other, section: "'tls'", advice: "'\(one)' is of no use without it"),
                at: place
            )
        }
        return tls
    }
}
