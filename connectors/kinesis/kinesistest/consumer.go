package kinesistest

type consumer struct{}
