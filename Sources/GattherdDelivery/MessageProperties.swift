import CMosquitto

/// What a message carries besides topic and payload; MQTT 5 only.
struct MessageProperties: Hashable {
    var isJSON = true
    /// In seconds.
    var expiry: UInt32?
    var correlation: [UInt8]?
    /// What the topic is called on this connection.
    var alias: UInt16?
    var user: [UserProperty] = []

    /// Something that a message says besides its payload.
    struct UserProperty: Hashable {
        let name: String
        let value: String
    }

    /// No other message is likely to have the same.
    fileprivate var isUnique: Bool { correlation != nil || !user.isEmpty }
}

/// libmosquitto's lists of properties, each made once; the library copies them into the messages.
@safe final class PropertyLists {
    private var lists: [MessageProperties: OpaquePointer] = unsafe [:]

    deinit {
        unsafe lists.values.forEach { list in
            var list: OpaquePointer? = unsafe list
            unsafe mosquitto_property_free_all(&list)
        }
    }

    /// Publishes with a list of the properties, which is kept unless the next message's differs anyway.
    func with<Result>(_ properties: MessageProperties, _ body: (OpaquePointer?) -> Result) -> Result {
        if let list = unsafe lists[properties] { return unsafe body(list) }
        var list = unsafe Self.make(properties)
        guard !properties.isUnique else {
            defer { unsafe mosquitto_property_free_all(&list) }
            return unsafe body(list)
        }
        if let list = unsafe list { unsafe lists[properties] = list }
        return unsafe body(list)
    }

    private static func make(_ properties: MessageProperties) -> OpaquePointer? {
        var list: OpaquePointer?
        if properties.isJSON {
            unsafe mosquitto_property_add_string(&list, MQTT_PROP_CONTENT_TYPE.id, "application/json")
        }
        if let expiry = properties.expiry {
            unsafe mosquitto_property_add_int32(&list, MQTT_PROP_MESSAGE_EXPIRY_INTERVAL.id, expiry)
        }
        if let correlation = properties.correlation {
            let count = UInt16(clamping: correlation.count)
            unsafe mosquitto_property_add_binary(&list, MQTT_PROP_CORRELATION_DATA.id, correlation, count)
        }
        if let alias = properties.alias {
            unsafe mosquitto_property_add_int16(&list, MQTT_PROP_TOPIC_ALIAS.id, alias)
        }
        for pair in properties.user {
            unsafe mosquitto_property_add_string_pair(&list, MQTT_PROP_USER_PROPERTY.id, pair.name, pair.value)
        }
        return unsafe list
    }
}

extension mqtt5_property {
    var id: Int32 { Int32(rawValue) }
}
