package kinesistest

// request is one operation with what the client sent.
type request interface {
	// target is what the request is about, as far as it can be told from the request alone. It does not need the lock.
	target(*Server) Target
	// serve does it under the server's lock. The answer refers to nothing that changes later; nil is an empty one.
	serve(*Server) (any, error)
}

// Target names what a request is about; what it is not about is empty.
type Target struct {
	Stream   string
	Shard    string // its id
	Consumer string // its name
}

// operations are all that the server knows, by the name that X-Amz-Target ends with.
var operations = map[string]func() request{
	"CreateStream":                  func() request { return new(createStream) },
	"DecreaseStreamRetentionPeriod": func() request { return new(changeRetention) },
	"DeleteStream":                  func() request { return new(deleteStream) },
	"DeregisterStreamConsumer":      func() request { return new(deregisterStreamConsumer) },
	"DescribeStream":                func() request { return new(describeStream) },
	"DescribeStreamConsumer":        func() request { return new(describeStreamConsumer) },
	"DescribeStreamSummary":         func() request { return new(describeStreamSummary) },
	"GetRecords":                    func() request { return new(getRecords) },
	"GetShardIterator":              func() request { return new(getShardIterator) },
	"IncreaseStreamRetentionPeriod": func() request { return &changeRetention{longer: true} },
	"ListShards":                    func() request { return new(listShards) },
	"ListStreamConsumers":           func() request { return new(listStreamConsumers) },
	"ListStreams":                   func() request { return new(listStreams) },
	"MergeShards":                   func() request { return new(mergeShards) },
	"PutRecord":                     func() request { return new(putRecord) },
	"PutRecords":                    func() request { return new(putRecords) },
	"RegisterStreamConsumer":        func() request { return new(registerStreamConsumer) },
	"SplitShard":                    func() request { return new(splitShard) },
	"SubscribeToShard":              func() request { return new(subscribeToShard) },
	"UpdateMaxRecordSize":           func() request { return new(updateMaxRecordSize) },
	"UpdateShardCount":              func() request { return new(updateShardCount) },
}
